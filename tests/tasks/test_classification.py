import math

import numpy as np
import pytest
import torch
from toy_tasks import text_examples, toy_start, toy_tokenizer

from albert_lab.tasks.classification import Kind
from albert_lab.tasks.examples import TextExample
from albert_lab.tasks.features import TextEncoder
from albert_lab.tasks.model import build_model
from albert_lab.tasks.task import load_task

ENCODER = TextEncoder(toy_tokenizer())


def kind_of(name):
    task = load_task(name)
    return task, Kind(task, task.at("smoke"))


@pytest.mark.parametrize("name", ["sst2", "mnli", "stsb"])
def test_the_loss_does_not_depend_on_padding(tmp_path, name):
    task, kind = kind_of(name)
    features = kind.make_features(text_examples(task), ENCODER, training=True)
    model = build_model(toy_start(tmp_path), kind, 0.0, 0).eval()
    items = np.argsort(features.lengths)[[0, -1]]
    assert len(set(features.lengths[items])) == 2
    together = model.loss(features.batch(items, torch.device("cpu")))
    apart = [model.loss(features.batch(items[[i]], torch.device("cpu"))) for i in (0, 1)]
    assert together.item() == pytest.approx(sum(loss.item() for loss in apart) / 2, rel=1e-5)


def test_sequences_are_truncated_to_the_limit_and_truncations_are_counted():
    _, kind = kind_of("mnli")
    examples = [TextExample("0", "cat " * 90, "dog " * 5, "neutral"), TextExample("1", "cat", "dog", "entailment")]
    features = kind.make_features(examples, ENCODER, training=True)
    assert features.lengths[0] == kind.settings.max_sequence_length > features.lengths[1]
    assert features.counts == {"cut": 1}
    assert features.targets["labels"].tolist() == [2, 1]


def test_the_chance_loss_is_the_entropy_of_the_labels_or_the_variance_of_numbers():
    task, kind = kind_of("sst2")
    features = kind.make_features(text_examples(task), ENCODER, training=True)
    assert kind.chance_loss(features) == pytest.approx(math.log(2))
    task, kind = kind_of("stsb")
    numbers = [float(example.label or 0) for example in text_examples(task)]
    features = kind.make_features(text_examples(task), ENCODER, training=True)
    assert kind.chance_loss(features) == pytest.approx(np.var(numbers), rel=1e-5)


def test_no_constant_answer_is_better_than_the_floor():
    _, kind = kind_of("mnli")
    dev = [
        TextExample(str(place), "a", "b", label) for place, label in enumerate(("neutral", "entailment", "entailment"))
    ]
    assert set(kind.constant(dev).answers.values()) == {"entailment"}
