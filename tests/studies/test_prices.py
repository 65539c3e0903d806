import os
from types import SimpleNamespace

import pytest
from records import toy_record
from toy_tasks import toy_config

from albert_lab.config.compose import load
from albert_lab.model.counts import count
from albert_lab.runs.finetunings import Finetuning
from albert_lab.runs.results import RECORD, write
from albert_lab.runs.run import Run
from albert_lab.studies.prices import Price, costs, finetuning_flops, last_speed
from albert_lab.tasks.task import load_task


@pytest.fixture
def item(own_home, monkeypatch):
    """A run, with the fine-tunings of a price as `missing`."""
    monkeypatch.setenv("ALBERT_LAB_TASKS", str(own_home / "data"))
    return SimpleNamespace(run=Run(toy_config(), {}), missing=())


@pytest.mark.parametrize(
    "overrides",
    [
        ["scale=laptop"],
        ["scale=smoke", "sharing=not-shared", "embedding_size=48", "inter_sentence=none"],
        ["scale=paper", "sharing=groups", "ffn_block=glu", "inter_sentence=three-way", "masking=official"],
    ],
    ids=" ".join,
)
def test_the_formula_gives_the_flops_that_the_model_is_counted_to_take_and_its_matrices(overrides):
    config = load(overrides)
    counted = count(config)
    parameters, training, inference = costs(config)
    assert training == pytest.approx(counted.training_flops, rel=1e-12)
    assert inference == pytest.approx(counted.inference_flops, rel=1e-12)
    assert parameters == pytest.approx(counted.total, rel=0.05)


def flops_by_task(item):
    return {task: flops for (_, task, _), flops in finetuning_flops(item).items()}


def flops_of(item, task, dev_examples, evaluations):
    """The FLOPs of a fine-tuning at the smoke scale."""
    settings, flops = task.fitted(item.run.config), count(item.run.config)
    tokens = settings.max_sequence_length * (4 if task.name == "race" else 1)
    examples = settings.steps * settings.batch_size
    return tokens * (examples * flops.training_flops + evaluations * dev_examples * flops.inference_flops)


def test_the_price_of_a_fine_tuning_has_every_evaluation_of_every_dev_example(item):
    whole = ["settings.smoke.dev_examples=null", "settings.smoke.checkpoint_steps=3", "settings.smoke.steps=4"]
    for name, dev_examples in (("mnli", 9815), ("race", 4887), ("squad1", 10570)):
        task = load_task(name, whole)
        item.missing = [Finetuning(item.run, task, 0)]
        assert flops_by_task(item) == {name: pytest.approx(flops_of(item, task, dev_examples, evaluations=2))}
    item.missing = [Finetuning(item.run, load_task("race"), 0)]
    assert flops_by_task(item)["race"] == pytest.approx(flops_of(item, load_task("race"), 32, evaluations=2))


def test_time_is_flops_over_the_speed_of_the_newest_run_on_the_device(own_home):
    assert last_speed("cpu") is None
    price = Price(runs=2, flops=4e12, seconds=60.0, disk_bytes=3 << 20)
    assert price.as_text("h100", None, 1) == "2 runs, 4.0e+12 FLOPs (no speed known for h100), 3.0 MiB"
    record = toy_record()
    for name, tokens_per_second, devices in (("old", 50.0, ()), ("new", 100.0, ()), ("gpu", 1e6, ("NVIDIA H100",))):
        training = record.training.model_copy(update={"tokens_per_second": tokens_per_second, "steps": 100})
        provenance = record.provenance.model_copy(update={"devices": devices})
        folder = own_home / "runs" / name
        folder.mkdir(parents=True)
        write(folder, record.model_copy(update={"name": name, "training": training, "provenance": provenance}))
    os.utime(own_home / "runs" / "old" / RECORD, (0, 0))
    speed = last_speed("cpu")
    assert speed is not None
    assert speed == 100 / (1 - record.data.padding_share) * record.train_flops_per_token
    assert last_speed("h100") == pytest.approx(1e4 * speed)
    assert price.as_data("cpu", speed, 2)["seconds"] == 60 + 4e12 / speed / 2
