import statistics

import pytest
import torch
from toy import toy_config
from toy_training import batch_of, pretrainer, weights

from albert_lab.training import pretrain
from albert_lab.training.pretrain import Inherited


def test_micro_batches_add_up_to_the_batch(corpus, tmp_path, monkeypatch):
    gradients = []
    for size in (8, 2):
        config = toy_config(corpus, "batch_size=8", f"machine.micro_batch_size={size}")
        trainer = pretrainer(config, tmp_path / str(size))
        # keeps the gradients for the comparison
        monkeypatch.setattr(trainer.optimizer, "step", lambda: None)
        monkeypatch.setattr(trainer.optimizer, "zero_grad", lambda set_to_none: None)
        result = trainer.step.take(batch_of(trainer, 0))
        gradients.append((result, {name: p.grad for name, p in trainer.model.named_parameters()}))
    (whole, whole_gradients), (parts, parts_gradients) = gradients
    for key in whole:
        torch.testing.assert_close(whole[key], parts[key], rtol=1e-5, atol=1e-6)
    for name, gradient in whole_gradients.items():
        torch.testing.assert_close(gradient, parts_gradients[name], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    "settings",
    [
        "inter_sentence=three-way",
        "dropout=0.1",
        "optimizer=muon",
        "length_schedule.stages=[{share: 0.5, fraction: 0.5}]",
    ],
)
def test_a_stopped_and_resumed_run_ends_with_the_weights_of_an_uninterrupted_run(
    corpus, tmp_path, settings
):
    config = toy_config(corpus, settings, "budget.value=9")
    straight = pretrainer(config, tmp_path / "straight")
    never_stopped = straight.run()
    assert never_stopped is not None
    for stop_after in (2, 5):  # inside the first stage, and where the second begins
        polls = iter([False] * stop_after)
        stopped = pretrainer(
            config, tmp_path / "stopped", is_stopped=lambda polls=polls: next(polls, True)
        )
        assert stopped.run() is None
    resumed = pretrainer(config, tmp_path / "stopped")
    done = resumed.run()
    assert done is not None
    assert done.cost["steps"] == 9
    assert done.cost["final_loss"] == never_stopped.cost["final_loss"]
    for name, tensor in weights(straight).items():
        assert torch.equal(tensor, weights(resumed)[name]), name
    straight_log, resumed_log = (
        (tmp_path / name / "metrics.jsonl").read_text() for name in ("straight", "stopped")
    )
    evaluations = [line for line in straight_log.splitlines() if '"evaluation"' in line]
    assert (
        len(evaluations)
        == len([line for line in resumed_log.splitlines() if '"evaluation"' in line])
        == 2
    )


@pytest.mark.parametrize(("before", "after"), [("none", "sop"), ("sop", "none"), ("sop", "nsp")])
def test_a_start_keeps_all_weights_but_a_pair_head_that_one_side_lacks(
    corpus, tmp_path, before, after
):
    parent = pretrainer(
        toy_config(corpus, f"inter_sentence={before}", "budget.value=1"), tmp_path / "parent"
    )
    parent.run()
    config = toy_config(corpus, f"inter_sentence={after}", "seed=8")
    child = pretrainer(config, tmp_path / "child", is_stopped=lambda: True)
    child.start = Inherited("toy", parent.folder, parent.model.encoder.shape, "weights")
    drawn, there = weights(child), weights(parent)
    assert child.run() is None
    for name, tensor in weights(child).items():
        is_new = before == "none" and name.startswith("pair_head.")
        assert torch.equal(tensor, (drawn if is_new else there)[name]), name


def test_the_final_loss_is_the_mean_of_the_last_steps_for_all_saves_and_evaluations(
    corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr(pretrain, "FINAL_STEPS", 5)
    last = []
    for points, lines in ((1, 9), (3, 2)):
        overrides = [
            f"evaluation.num_curve_points={points}",
            f"machine.log_every_steps={lines}",
            "budget.value=9",
        ]
        trainer = pretrainer(
            toy_config(corpus, *overrides, "machine.checkpoint_seconds=0"), tmp_path / str(points)
        )
        done = trainer.run()
        assert done is not None
        assert done.cost["final_loss"] == statistics.fmean(trainer.progress.last_losses)
        last.append(trainer.progress.last_losses)
    assert last[0] == last[1]
    assert len(last[0]) == 5


def test_a_budget_in_tokens_ends_with_the_step_that_reaches_it_and_all_batches_are_counted(
    corpus, tmp_path
):
    config = toy_config(corpus, "budget=tokens", "budget.value=900")
    trainer = pretrainer(config, tmp_path)
    done = trainer.run()
    assert done is not None
    progress = done.progress
    batches = [batch_of(trainer, step) for step in range(progress.steps)]
    assert progress.tokens == sum(batch.num_tokens for batch in batches)
    assert progress.tokens - batches[-1].num_tokens < 900 <= progress.tokens
