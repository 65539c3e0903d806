import math

import numpy as np
import pytest
from toy_tasks import text_examples, toy_kind, toy_tokenizer

from albert_lab.tasks.classification import Kind
from albert_lab.tasks.examples import TextExample
from albert_lab.tasks.task import load_task

TOKENIZER = toy_tokenizer()


def test_sequences_are_truncated_to_the_limit_and_truncations_are_counted():
    kind = toy_kind("mnli")
    examples = [
        TextExample("0", "cat " * 90, "dog " * 5, "neutral"),
        TextExample("1", "cat", "dog", "entailment"),
    ]
    features = kind.make_features(examples, TOKENIZER, training=True)
    assert features.lengths[0] == kind.settings.max_sequence_length > features.lengths[1]
    assert features.cut == 1
    assert features.targets["labels"].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("name", "loss"), [("sst2", math.log(2)), ("stsb", np.var([n % 5 for n in range(16)]))]
)
def test_the_chance_loss_is_the_entropy_of_the_labels_or_the_variance_of_numbers(name, loss):
    kind = toy_kind(name)
    features = kind.make_features(text_examples(kind.task), TOKENIZER, training=True)
    assert kind.chance_loss(features) == pytest.approx(loss)


def test_the_constant_answer_is_the_label_that_scores_best():
    task = load_task("qqp")
    form = task.format.model_copy(update={"metrics": ("f1",)})
    kind = Kind(task := task.model_copy(update={"format": form}), task.at("smoke"))
    examples = [TextExample(str(n), "a", "b", kind.form.labels[n > 2]) for n in range(5)]
    assert set(kind.constant(examples)) == {kind.form.labels[1]}, "the rarer one, of which F1 is"
