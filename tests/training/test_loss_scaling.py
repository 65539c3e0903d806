"""Pre-training in fp16, on a CPU, where it is refused outside of tests."""

from dataclasses import replace

import pytest
import torch
from toy import toy_config
from toy_training import pretrainer, weights

from albert_lab.training import pretrain


def in_fp16(trainer):
    """The pre-training with forward passes in fp16."""
    trainer.evaluator = replace(trainer.evaluator, autocast=lambda: torch.autocast("cpu", torch.float16))
    trainer.step = replace(trainer.step, autocast=trainer.evaluator.autocast)
    return trainer


@pytest.fixture
def first_scale(monkeypatch):
    """Sets the scale with which losses start."""

    def start(scale: float) -> None:
        def scaler(precision, device):
            return torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=3)

        monkeypatch.setattr(pretrain, "loss_scaler", scaler)

    return start


def test_a_step_whose_gradients_overflow_changes_no_weights_and_halves_the_scale(corpus, tmp_path, first_scale):
    first_scale(2.0**60)
    trainer = in_fp16(pretrainer(toy_config(corpus, "optimizer.warmup=0"), tmp_path))
    before = weights(trainer)
    result = trainer.step.take(trainer.model, trainer.batches.batch(0))
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(trainer).items())
    assert trainer.step.scaler.get_scale() == 2.0**59
    assert result["gradient_norm"] == 0.0


def test_a_resumed_run_keeps_its_scale(corpus, tmp_path, first_scale):
    first_scale(2.0**22)  # the first steps overflow, so that a resumed run with a new scale would lose steps
    config = toy_config(corpus, "budget.value=9")
    straight = in_fp16(pretrainer(config, tmp_path / "straight"))
    straight.run()
    assert straight.step.scaler.get_scale() < 2.0**22
    polls = iter([False] * 5)
    stopped = in_fp16(pretrainer(config, tmp_path / "stopped", is_stopped=lambda: next(polls, True)))
    assert stopped.run() is None
    resumed = in_fp16(pretrainer(config, tmp_path / "stopped"))
    resumed.run()
    assert resumed.step.scaler.state_dict() == straight.step.scaler.state_dict()
    assert all(torch.equal(tensor, weights(straight)[name]) for name, tensor in weights(resumed).items())
