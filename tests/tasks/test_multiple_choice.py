import numpy as np
import pytest
import torch
from toy_tasks import loss_of, scores_of, toy_kind, toy_start, toy_tokenizer

from albert_lab.tasks.examples import ChoiceExample
from albert_lab.tasks.model import build_model
from albert_lab.tasks.multiple_choice import fill_in

TOKENIZER = toy_tokenizer()
KIND = toy_kind("race")
OPTIONS = ("red", "green", "blue", "big")


def test_an_option_is_put_into_the_blank_or_after_the_question():
    assert fill_in("it was _ .", "red") == "it was red ."
    assert fill_in("it was ____ .", "red") == "it was red ."
    assert fill_in("what was it?", "red") == "what was it? red"


def features_of(*examples):
    return KIND.make_features(examples, TOKENIZER, training=True)


def probabilities(model, features):
    """Of each option of each question; 0 for one that it lacks."""
    batch = features.batch(np.arange(len(features.lengths)), torch.device("cpu"))
    return scores_of(model, batch)["values"].detach().numpy()


def test_the_question_keeps_its_last_tokens_and_the_passage_its_first():
    passage, question = "the cat sat on a mat " * 20, "dog " * 40 + "_"
    asked, passage_tokens = TOKENIZER.encode([fill_in(question, "blue"), passage])
    longest, length = KIND.settings.question_length, KIND.settings.max_sequence_length
    features = features_of(ChoiceExample("0", passage, question, OPTIONS, 2))
    kept = passage_tokens[: length - longest - 3]
    assert features.rows[2][0][1:-1] == [*kept, TOKENIZER.sep_id, *asked[-longest:]]
    assert len(features.lengths) == features.cut == 1
    assert features.targets["labels"].tolist() == [2]
    alone = features_of(ChoiceExample("0", "", question, OPTIONS, 2)).rows[2][0]
    assert alone[2:-1] == asked[3 - length :]
    assert ChoiceExample("0", "", "", ("a", "b"), 0).together == "a"


def test_the_loss_is_that_of_the_right_option_and_does_not_depend_on_padding(tmp_path):
    features = features_of(
        ChoiceExample("0", "the cat", "it was", OPTIONS, 1),
        ChoiceExample("1", "the cat sat on a mat", "it was", OPTIONS, 3),
    )
    model = build_model(toy_start(tmp_path), KIND, 0).eval()
    right = probabilities(model, features)[[0, 1], [1, 3]]

    def loss(*items):
        return loss_of(model, features.batch(np.array(items), torch.device("cpu"))).item()

    expected = pytest.approx(-np.log(right).mean(), rel=1e-5)
    assert loss(0, 1) == expected
    assert (loss(0) + loss(1)) / 2 == expected


def test_a_question_with_fewer_options_never_gets_a_missing_option(tmp_path):
    few = ChoiceExample("0", "the cat", "it was", ("red", "big"), 1)
    many = ChoiceExample("1", "the cat", "it was", (*OPTIONS, "bad"), 4)
    features = features_of(few, many)
    values = probabilities(build_model(toy_start(tmp_path), KIND, 0).eval(), features)
    assert values.sum(axis=1) == pytest.approx([1, 1])
    assert values[0, 2:].tolist() == [0, 0, 0]
    assert KIND.chance_loss(features) == pytest.approx(np.log([2, 5]).mean())
    assert KIND.constant([few, many]) == [1, 4]
