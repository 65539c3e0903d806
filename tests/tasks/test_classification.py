import math

import numpy as np
import pytest
from toy_tasks import text_examples, toy_tokenizer

from albert_lab.tasks.classification import Kind
from albert_lab.tasks.examples import TextExample
from albert_lab.tasks.task import load_task

TOKENIZER = toy_tokenizer()


def kind_of(name):
    task = load_task(name)
    return task, Kind(task, task.at("smoke"))


def test_sequences_are_truncated_to_the_limit_and_truncations_are_counted():
    _, kind = kind_of("mnli")
    examples = [
        TextExample("0", "cat " * 90, "dog " * 5, "neutral"),
        TextExample("1", "cat", "dog", "entailment"),
    ]
    features = kind.make_features(examples, TOKENIZER, training=True)
    assert features.lengths[0] == kind.settings.max_sequence_length > features.lengths[1]
    assert features.cut == 1
    assert features.targets["labels"].tolist() == [2, 1]


def test_the_chance_loss_is_the_entropy_of_the_labels_or_the_variance_of_numbers():
    task, kind = kind_of("sst2")
    features = kind.make_features(text_examples(task), TOKENIZER, training=True)
    assert kind.chance_loss(features) == pytest.approx(math.log(2))
    task, kind = kind_of("stsb")
    numbers = [float(example.label or 0) for example in text_examples(task)]
    features = kind.make_features(text_examples(task), TOKENIZER, training=True)
    assert kind.chance_loss(features) == pytest.approx(np.var(numbers), rel=1e-5)


def test_the_constant_answer_is_the_label_that_scores_best():
    task, _ = kind_of("qqp")
    form = task.format.model_copy(update={"metrics": ("f1",)})
    kind = Kind(task := task.model_copy(update={"format": form}), task.at("smoke"))
    examples = [TextExample(str(n), "a", "b", kind.form.labels[n > 2]) for n in range(5)]
    assert set(kind.constant(examples)) == {kind.form.labels[1]}, "the rarer one, of which F1 is"
