"""Steps on torch's meta device, which raises an error if a tensor of the CPU is mixed in or a value
is read.

A GPU raises an error in the first case and waits in the second.
"""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.optim import AdamW
from toy import toy_config
from toy_tasks import scores_of, toy_start, toy_task
from toy_training import pretrainer

from albert_lab.measures.catalog import of_kind
from albert_lab.measures.measure import PairMeasure
from albert_lab.model.encoder import PretrainingModel
from albert_lab.tasks.batches import training_items
from albert_lab.tasks.finetune import build_optimizer as task_optimizer
from albert_lab.tasks.finetune import take_step
from albert_lab.tasks.kind import load_kind
from albert_lab.tasks.model import build_model
from albert_lab.training import evaluate
from albert_lab.training.device import inputs_of
from albert_lab.training.optimizer import build_optimizer
from albert_lab.training.step import Step

META = torch.device("meta")


@pytest.fixture(autouse=True)
def no_fused_adamw(monkeypatch):
    """The meta device has no fused AdamW."""
    begin = AdamW.__init__
    monkeypatch.setattr(
        AdamW, "__init__", lambda adamw, *args, fused, **options: begin(adamw, *args, **options)
    )


def on_meta(config):
    model = PretrainingModel.from_config(config).to(META)
    return Step(config, model, build_optimizer(model, config.optimizer, 0.01), META)


@pytest.mark.parametrize(
    "overrides",
    [
        ["optimizer=lamb"],
        ["optimizer=adamw"],
        ["optimizer=muon"],
        ["inter_sentence=none", "dropout=0.1"],
    ],
)
def test_a_training_step_never_waits_and_mixes_no_devices(corpus, tmp_path, overrides):
    config = toy_config(corpus, "machine.micro_batch_size=4", *overrides)
    batch = next(pretrainer(config, tmp_path).batches.prefetch(0, lambda: 0.0))
    step = on_meta(config)
    results = [step.take(batch, number) for number in range(2)]
    assert all(value.device == META for sums in results for value in sums.values())


@pytest.mark.parametrize("objective", ["sop", "none"])
def test_an_evaluation_waits_only_for_its_results(corpus, tmp_path, monkeypatch, objective):
    config = toy_config(corpus, f"inter_sentence={objective}")
    trainer = pretrainer(config, tmp_path)
    fetched = []

    def fetch(parts):
        shape = torch.cat(parts).shape
        fetched.append(shape)
        return np.random.default_rng(0).random(shape, dtype=np.float32)

    monkeypatch.setattr(evaluate, "fetch", fetch)
    trainer.evaluator.device = META
    trainer.evaluator.along_the_way(on_meta(config).model, 10)
    pairs = 0 if objective == "none" else sum(measure.in_curves for measure in of_kind(PairMeasure))
    assert len(fetched) == 2 + 2 * pairs, (
        "correct and loss of masked tokens; margin and pooled output of pairs"
    )


@pytest.mark.parametrize("name", ["sst2", "stsb", "squad1", "squad2", "race"])
def test_a_fine_tuning_step_and_its_evaluation_never_wait_and_mix_no_devices(tmp_path, name):
    start, task = toy_start(tmp_path / "run"), toy_task(name, tmp_path / "data")
    settings = task.fitted(start.config)
    kind = load_kind(task, settings)
    examples, _ = task.read(tmp_path / "data", "train")
    features = kind.make_features(examples, start.tokenizer, training=True)
    model = build_model(start, kind, 0).to(META)
    model.train()
    optimizer = task_optimizer(model, settings.optimizer, 0.01)
    batches = training_items(features.lengths, settings.batch_size, 0)
    losses = [
        take_step(model, optimizer, features.batch(next(batches), META), nullcontext)
        for _ in range(2)
    ]
    assert all(loss.device == META for loss in losses)
    result = scores_of(model.eval(), features.batch(next(batches), META))
    assert all(values.device == META for values in result.values())


def test_no_mask_is_passed_if_no_sequence_is_padded_except_on_a_cpu(corpus, tmp_path):
    batch = next(pretrainer(toy_config(corpus), tmp_path).batches.prefetch(0, lambda: 0.0))
    full, padded = (
        np.ones_like(batch.attention_mask),
        np.tri(*batch.attention_mask.shape, dtype=bool),
    )
    for mask, device, is_passed in (
        (full, META, False),
        (padded, META, True),
        (full, torch.device("cpu"), True),
    ):
        assert (
            inputs_of(replace(batch, attention_mask=mask), device)["attention_mask"] is not None
        ) == is_passed
