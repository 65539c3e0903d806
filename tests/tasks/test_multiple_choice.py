import numpy as np
import pytest
import torch
from toy_tasks import loss_of, scores_of, toy_start, toy_tokenizer

from albert_lab.tasks.examples import ChoiceExample
from albert_lab.tasks.model import build_model
from albert_lab.tasks.multiple_choice import Kind, fill_in
from albert_lab.tasks.task import load_task

TOKENIZER = toy_tokenizer()
TASK = load_task("race")
KIND = Kind(TASK, TASK.at("smoke"))
OPTIONS = ("red", "green", "blue", "big")


def test_an_option_is_put_into_the_blank_or_after_the_question():
    assert fill_in("it was _ .", "red") == "it was red ."
    assert fill_in("it was ____ .", "red") == "it was red ."
    assert fill_in("what was it?", "red") == "what was it? red"


def test_the_question_keeps_its_last_tokens_and_the_passage_its_first():
    passage, question = "the cat sat on a mat " * 20, "dog " * 40 + "_"
    features = KIND.make_features(
        [ChoiceExample("0", passage, question, OPTIONS, 2)], TOKENIZER, training=True
    )
    longest = KIND.settings.question_length
    assert longest is not None
    asked, passage_tokens = (
        TOKENIZER.encode([fill_in(question, "blue")])[0],
        TOKENIZER.encode([passage])[0],
    )
    row, _ = features.rows[2]
    room = KIND.settings.max_sequence_length - longest - 3
    assert row[1 : 1 + room] == passage_tokens[:room]
    assert row[-1 - longest : -1] == asked[-longest:]
    assert len(row) == KIND.settings.max_sequence_length
    assert len(features.lengths) == features.cut == 1
    assert features.targets["labels"].tolist() == [2]
    alone = KIND.make_features(
        [ChoiceExample("0", "", question, OPTIONS, 2)], TOKENIZER, training=True
    ).rows[2][0]
    assert alone[2:-1] == asked[3 - KIND.settings.max_sequence_length :]
    assert ChoiceExample("0", "", "", ("a", "b"), 0).texts[0] == "a", "by which examples are split"


def test_the_loss_is_that_of_the_right_option_and_does_not_depend_on_padding(tmp_path):
    examples = [
        ChoiceExample("0", "the cat", "it was", OPTIONS, 1),
        ChoiceExample("1", "the cat sat on a mat", "it was", OPTIONS, 3),
    ]
    features = KIND.make_features(examples, TOKENIZER, training=True)
    model = build_model(toy_start(tmp_path), KIND, 0).eval()
    cpu = torch.device("cpu")
    probabilities = scores_of(model, features.batch(np.array([0, 1]), cpu))["values"].detach()
    expected = -np.log(probabilities[[0, 1], [1, 3]].numpy()).mean()
    assert loss_of(model, features.batch(np.array([0, 1]), cpu)).item() == pytest.approx(
        float(expected), rel=1e-5
    )
    apart = [loss_of(model, features.batch(np.array([i]), cpu)).item() for i in (0, 1)]
    assert sum(apart) / 2 == pytest.approx(float(expected), rel=1e-5)


def test_a_question_with_fewer_options_never_gets_a_missing_option(tmp_path):
    few = ChoiceExample("0", "the cat", "it was", ("red", "big"), 1)
    many = ChoiceExample("1", "the cat", "it was", (*OPTIONS, "bad"), 4)
    features = KIND.make_features([few, many], TOKENIZER, training=True)
    model = build_model(toy_start(tmp_path), KIND, 0).eval()
    values = (
        scores_of(model, features.batch(np.array([0, 1]), torch.device("cpu")))["values"]
        .detach()
        .numpy()
    )
    assert values.sum(axis=1) == pytest.approx([1, 1])
    assert values[0, 2:].tolist() == [0, 0, 0]
    assert KIND.chance_loss(features) == pytest.approx(np.log([2, 5]).mean())
    assert KIND.constant([few, many]) == [1, 4]
