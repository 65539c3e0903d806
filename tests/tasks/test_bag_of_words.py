import pytest

from albert_lab.tasks.bag_of_words import bag_of_words
from albert_lab.tasks.examples import ChoiceExample, TextExample


def correct(train, examples):
    answers = bag_of_words(train, examples)
    assert answers
    return [answers[example.id] == example.label for example in examples]


def test_words_that_tell_the_label_give_it_in_any_order():
    texts = {"good": "a good film", "bad": "a bad film"}
    train = [
        TextExample(str(place), texts[word], None, label)
        for place, (word, label) in enumerate([("good", "1"), ("bad", "0")] * 3)
    ]
    dev = [TextExample("a", "film good", None, "1"), TextExample("b", "bad film", None, "0")]
    assert set(correct(train, dev)) == {True}


def test_the_words_of_two_texts_count_by_themselves():
    pairs = [("x", "y", "entailment"), ("y", "x", "neutral")]
    train = [TextExample(str(place), *pair) for place, pair in enumerate(pairs * 3)]
    dev = [TextExample("a", "x", "y", "entailment"), TextExample("b", "y", "x", "neutral")]
    assert set(correct(train, dev)) == {True}


def test_numbers_are_predicted_too():
    train = [TextExample(str(number), "so " + "alike" * (number > 2), None, float(number)) for number in range(6)]
    answers = bag_of_words(train, train)
    assert answers
    assert list(answers.values()) == pytest.approx([1, 1, 1, 4, 4, 4], abs=1)


def test_an_option_may_be_told_by_the_words_of_its_passage():
    train = [ChoiceExample(str(place), "the red cat", "which", ("red", "blue"), 0) for place in range(4)]
    dev = [ChoiceExample("a", "a green dog", "which", ("pink", "green", "white"), 1)]
    assert set(correct(train, dev)) == {True}
