import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_lab.score import by_block
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import ChoiceExample, TextExample
from albert_lab.tasks.formats import OF_NUMBERS

# GLUE


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize(
    ("labels", "predictions"), [([1.0, 2.0], [3.0, 3.0]), ([3.0, 3.0], [1.0, 2.0]), ([1.0], [1.0])]
)
def test_a_correlation_with_a_constant_is_0_without_a_warning(name, labels, predictions):
    assert metrics.of_glue(name, labels, predictions) == 0.0


# 3 true and 1 false positive
CLASSES = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0, 0, 0]
GROWING = [1, 2, 3, 4], [1, 2, 3, 10]


@pytest.mark.parametrize(
    ("name", "sides", "expected"),
    [
        ("accuracy", CLASSES, 80),
        ("f1", CLASSES, 75),
        ("matthews", CLASSES, 100 * (3 * 5 - 1 * 1) / math.sqrt(4 * 4 * 6 * 6)),
        ("matthews", ([0, 0, 1], [1, 1, 1]), 0),
        ("pearson", GROWING, 100 * 14 / math.sqrt(5 * 50)),
        ("spearman", GROWING, 100),
        ("spearman", ([1, 2, 3], [1, 3, 2]), 50),
    ],
)
def test_scores_equal_values_calculated_by_hand(name, sides, expected):
    assert metrics.of_glue(name, *sides) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["pearson", "spearman", "f1"])
def test_the_jackknife_has_the_score_as_its_mean_and_by_blocks_its_error(name):
    rng = np.random.default_rng(0)
    count = 1630  # blocks of 25 and of 26
    sides = np.array([[1, 0], [0.8, 0.6]]) @ rng.normal(size=(2, count))
    sides = 1 * (sides > 0) if name == "f1" else sides
    values = metrics.jackknife(lambda *of: metrics.of_glue(name, *of), *sides)
    assert 100 * np.mean(values) == pytest.approx(metrics.of_glue(name, *sides))
    drawn = [
        metrics.of_glue(name, *sides[:, places]) for places in rng.integers(0, count, (400, count))
    ]
    blocks = by_block(values)
    means = np.divide(blocks.sum, blocks.n)
    assert 100 * means.std() / 8 == pytest.approx(np.std(drawn), rel=0.25)


# SQuAD


def score_squad(answers, predictions, unanswerable=False):
    shares = metrics.match_squad(answers, predictions, unanswerable)
    return {name: 100 * sum(of) / len(of) for name, of in shares.items()}


def test_the_two_scripts_differ_on_texts_without_a_word():
    answers, predictions = [["The"]], ["an"]
    assert score_squad(answers, predictions) == {"exact_match": 100, "f1": 0}
    assert score_squad(answers, predictions, True)["HasAns_f1"] == 100
    # 2.0 leaves out such a gold text if there is another.
    answers = [["The", "The Who"]]
    assert score_squad(answers, predictions)["exact_match"] == 100
    assert score_squad(answers, predictions, True)["exact"] == 0


ANSWERS = [["cat"], ["dog"], [], []]
PREDICTIONS = ["cat", "the big dog", "", "owl"]


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4, unique=True))
def test_no_other_threshold_is_better_than_the_best(values):
    def f1_at(threshold):
        answers = [
            "" if value > threshold else text
            for value, text in zip(values, PREDICTIONS, strict=True)
        ]
        return score_squad(ANSWERS, answers, True)["f1"]

    best = f1_at(metrics.best_threshold(ANSWERS, PREDICTIONS, values))
    assert all(f1_at(threshold) <= best + 1e-9 for threshold in [-1.0, *values])


# Bags of words


def correct(train, examples):
    answers = metrics.bag_of_words(train, examples)
    assert answers
    return [answer == example.label for answer, example in zip(answers, examples, strict=True)]


def test_the_words_of_two_texts_count_by_themselves():
    pairs = [("x", "y", "entailment"), ("y", "x", "neutral")]
    train = [TextExample(str(place), *pair) for place, pair in enumerate(pairs * 3)]
    dev = [TextExample("a", "x", "y", "entailment"), TextExample("b", "y", "x", "neutral")]
    assert set(correct(train, dev)) == {True}


def test_the_words_of_scripts_with_vowel_signs_are_whole():
    answers = ("किताब", "कताबि")  # the same letters without signs
    train = [TextExample(str(n), text, None, text) for n, text in enumerate(answers * 3)]
    assert set(correct(train, train)) == {True}


def test_numbers_are_predicted_too():
    train = [
        TextExample(str(number), "so " + "alike" * (number > 2), None, float(number))
        for number in range(6)
    ]
    answers = metrics.bag_of_words(train, train)
    assert answers
    assert answers == pytest.approx([1, 1, 1, 4, 4, 4], abs=1)


def test_an_option_may_be_told_by_the_words_of_its_passage():
    train = [
        ChoiceExample(str(place), "the red cat", "which", ("red", "blue"), 0) for place in range(4)
    ]
    dev = [ChoiceExample("a", "a green dog", "which", ("pink", "green", "white"), 1)]
    assert set(correct(train, dev)) == {True}
