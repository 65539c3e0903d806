import math
from itertools import count

import pytest
import torch
from records import toy_finetuning
from torch import nn
from toy import silent
from toy_tasks import toy_config, toy_start, toy_task, write_examples

from albert_lab.data.files import digest_path
from albert_lab.model.encoder import PretrainingModel
from albert_lab.score import Score, share
from albert_lab.tasks import finetune as module
from albert_lab.tasks import records as records_module
from albert_lab.tasks.finetune import build_optimizer, finetune, signs_of
from albert_lab.tasks.kind import load_kind
from albert_lab.tasks.model import build_model
from albert_lab.tasks.records import (
    FinetuningRecord,
    current,
    read_record,
    record_file,
    summarize,
    weights_file,
)
from albert_lab.tasks.task import load_task
from albert_lab.training import checkpoint
from albert_lab.training.evaluate import DivergedError, StoppedError


def make(start, task, data, seed=0, say=silent, **options) -> FinetuningRecord:
    return finetune(start, task, seed, data=data, say=say, **options)


@pytest.mark.parametrize("name", ["sst2", "mnli", "race", "squad1", "squad2"])
def test_a_record_has_the_official_scores_with_interval_and_sums(tmp_path, name):
    data = tmp_path / "data"
    task, start = toy_task(name, data), toy_start(tmp_path / "run")
    record = make(start, task, data)
    assert record == read_record(start.folder, name, 0)
    assert set(task.format.scores) <= record.best.scores.keys()
    values = {metric: score.value for metric, score in record.best.scores.items()}
    assert task.main_score(values) == record.best.main.value
    main, documents = record.best.main, record.documents
    assert record.best.step in (3, 6)
    assert record.last.step == 6
    assert main.value >= record.last.main.value
    assert (record.best.threshold is not None) == (name == "squad2")
    assert documents is not None
    assert main.n == sum(documents.n) == record.dev.used
    assert 100 * sum(documents.sum) / main.n == pytest.approx(main.value, abs=0.01)


def rewrite(task, data, split):
    """The same ids with other examples."""
    examples, _ = task.read(data, split)
    write_examples(task, task.file(data, split), [*examples[1:], examples[0]])
    digest_path.cache_clear()


def test_a_finished_fine_tuning_is_repeated_only_with_other_settings_or_examples(tmp_path):
    data, said = tmp_path / "data", []
    start, task = toy_start(tmp_path / "run"), toy_task("mnli", data)
    records = [make(start, task, data)]
    file = record_file(start.folder, "mnli", 0)
    written = file.stat().st_mtime_ns
    make(start, toy_task("mnli", data), data)
    assert file.stat().st_mtime_ns == written
    for split in ("train", "dev"):
        rewrite(task, data, split)
        records.append(make(start, task, data, say=said.append))
        before, after = (getattr(record, split).fingerprint for record in records[-2:])
        assert before != after
        assert records[-1].identity == records[0].identity
    task.file(data, "dev").unlink()
    assert make(start, task, data) == records[-1], "a missing file shows no change"
    changed = make(start, toy_task("mnli", data, "settings.smoke.steps=4"), data, say=said.append)
    assert changed.settings.steps == 4
    assert len([line for line in said if "its settings or its data have changed" in line]) == 3


def test_a_fine_tuning_is_repeated_when_the_data_of_the_task_that_it_started_from_have_changed(
    tmp_path, monkeypatch
):
    data = tmp_path / "data"
    before, task = toy_task("mnli", data), toy_task("rte", data)
    for place in (module, records_module):
        monkeypatch.setattr(
            place, "load_start", lambda task: {"mnli": before, None: None}[task.start_from]
        )
    start = toy_start(tmp_path / "run")
    record = make(start, task, data)
    assert record.start_from == "mnli"
    assert weights_file(start.folder, "mnli", 0).exists()
    assert make(start, task, data) == record
    rewrite(before, data, "train")
    assert current(start.folder, start.name, start.config, task, 0, data) is None
    make(start, before, data)
    assert read_record(start.folder, "rte", 0) is None, "its start has other weights now"


def after(calls: int):
    """Whether it was called more often than so."""
    numbers = count()
    return lambda: next(numbers) >= calls


@pytest.mark.parametrize("stop", [0, 5])
def test_a_stopped_fine_tuning_has_no_record_and_starts_again_with_identical_results(
    tmp_path, stop
):
    data, name = tmp_path / "data", "squad2"
    task = toy_task(name, data, "settings.smoke.dropout=0.1")
    whole = make(toy_start(tmp_path / "whole"), task, data)
    start = toy_start(tmp_path / "stopped")
    with pytest.raises(StoppedError):
        make(start, task, data, is_stopped=after(stop))
    assert read_record(start.folder, name, 0) is None
    again = make(start, task, data)
    assert (again.best, again.last, again.attempts) == (whole.best, whole.last, whole.attempts)


def test_a_stopped_fine_tuning_leaves_no_weights_for_a_later_one(tmp_path):
    data = tmp_path / "data"
    task, start = toy_task("mnli", data), toy_start(tmp_path / "run")
    with pytest.raises(StoppedError):  # after the first of two evaluations
        make(start, task, data, is_stopped=after(5), keep_weights=True)
    make(start, task, data)
    assert not weights_file(start.folder, "mnli", 0).exists()


def test_pretrained_weights_are_kept_and_new_ones_depend_on_the_seed_alone(tmp_path):
    pretrained = PretrainingModel.from_config(toy_config("seed=7"))
    checkpoint.save_weights(tmp_path / "weights.safetensors", pretrained)
    task = load_task("sst2")

    def states(start, seeds=(0, 0, 1), pooler="pretrained"):
        kind = load_kind(task, task.at("smoke").model_copy(update={"pooler": pooler}))
        return [build_model(start, kind, seed).state_dict() for seed in seeds]

    def different(one, other):
        return {key for key in one if not torch.equal(one[key], other[key])}

    start = toy_start(tmp_path, weights=tmp_path / "weights.safetensors")
    (kept,) = states(start, [0])
    body = {key for key in kept if not key.startswith("head")}
    assert different(kept, kept | pretrained.state_dict()) == set()
    assert body <= pretrained.state_dict().keys()
    new, again, other = states(start, pooler="new")
    assert different(kept, new) == {"pooler.dense.weight"}
    assert not different(new, again)
    assert different(new, other) == {"pooler.dense.weight", "head.output.weight"}
    first, again, other = states(toy_start(tmp_path))
    assert not different(first, again)
    assert {"head.output.weight", "pooler.dense.weight"} < different(first, other)


def test_constant_answers_are_flagged_and_repeated_at_half_the_rate(tmp_path):
    data = tmp_path / "data"
    # A tiny rate, so that the head keeps its first answer.
    task = toy_task("mnli", data, "settings.smoke.learning_rate=1e-12", "settings.smoke.retries=2")
    said = []
    record = make(toy_start(tmp_path / "run"), task, data, say=said.append)
    assert [attempt.learning_rate for attempt in record.attempts] == [1e-12, 5e-13, 2.5e-13]
    assert record.diverged == record.attempts[-1].diverged
    assert any("it ends near chance" in sign for sign in record.diverged)
    assert any("same answer" in sign for sign in record.diverged)
    assert len([line for line in said if "again at half the learning rate" in line]) == 2


def test_the_summary_of_seeds_is_their_median():
    records = [toy_finetuning("run", "sst2", best, n=100) for best in (92, 90, 97)]
    best = summarize(records)
    assert (best.value, best.n) == (92, 100)


def test_weights_that_are_not_finite_fail_the_fine_tuning(tmp_path, monkeypatch):
    data = tmp_path / "data"
    task = toy_task("sst2", data, "settings.smoke.steps=2", "settings.smoke.checkpoint_steps=2")
    step = module.take_step

    def overflow(model, *rest):
        loss = step(model, *rest)
        model.pooler.dense.bias.data.fill_(math.inf)
        return loss

    monkeypatch.setattr(module, "take_step", overflow)
    with pytest.raises(DivergedError, match="seed 0"):
        make(toy_start(tmp_path / "run"), task, data)
    assert read_record(tmp_path / "run", "sst2", 0) is None


CORRELATION = Score(value=5.0, n=1000, floor=0.0, by="fine-tuned")


@pytest.mark.parametrize(
    ("end_loss", "last", "diverged"),
    [
        (0.69, 50, True),
        (0.69, 59, True),  # the interval includes the floor
        (0.69, 62, False),  # it has learnt, although the loss has hardly changed
        (0.60, 50, False),  # it has learnt the training examples
        (0.69, CORRELATION, True),  # within its standard error
        (0.69, CORRELATION.model_copy(update={"value": 7.0}), False),
    ],
)
def test_only_loss_and_score_together_are_near_chance(end_loss, last, diverged):
    is_share = isinstance(last, int)
    last = share(last, 100, floor=50.0, by="fine-tuned") if is_share else last
    assert bool(signs_of(end_loss, 0.693, last, "ab", is_share=is_share)) == diverged


@pytest.mark.parametrize(("name", "length"), [("adamw", 1.0), ("adam-release", 0.1 / 0.001**0.5)])
def test_only_the_adam_of_the_release_starts_with_longer_steps(name, length):
    model = nn.Linear(3, 1, bias=False)
    before = model.weight.detach().clone()
    optimizer = build_optimizer(model, name, 1e-3)
    model(torch.full((1, 3), 100.0)).sum().backward()
    optimizer.step()
    moved = before - model.weight.detach()
    assert torch.allclose(moved, torch.full_like(moved, 1e-3 * length), rtol=0.01)
