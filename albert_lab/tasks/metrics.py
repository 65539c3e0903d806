"""Scores of answers: GLUE's by scikit-learn and scipy, in percent; SQuAD's as in the official scripts.

An undefined score is 0, never NaN: a correlation with a constant side, like scikit-learn's Matthews correlation and F1
in this case. So a model with constant answers scores 0, and its score is not missing.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add

import numpy as np

from albert_lab.data.words import apart, is_unspaced

Classes = Sequence[int]
Numbers = Sequence[float]


def accuracy(labels: Classes, predictions: Classes) -> float:
    """Share of right predictions."""
    return 100 * float(np.mean(np.equal(labels, predictions)))


def f1(labels: Classes, predictions: Classes) -> float:
    """F1 of class 1 of two classes; 0 if it occurs on neither side."""
    from sklearn.metrics import f1_score

    return 100 * float(f1_score(labels, predictions, pos_label=1, zero_division=0.0))  # pyright: ignore[reportArgumentType]


def matthews(labels: Classes, predictions: Classes) -> float:
    """Matthews correlation; 0 if one side has a single class."""
    from sklearn.metrics import matthews_corrcoef

    if len({*labels, *predictions}) == 1:  # scikit-learn gives 0 too, with a warning
        return 0.0
    return 100 * float(matthews_corrcoef(labels, predictions))


def pearson(labels: Numbers, predictions: Numbers) -> float:
    """Pearson correlation; 0 if one side is constant."""
    return _correlation("pearsonr", labels, predictions)


def spearman(labels: Numbers, predictions: Numbers) -> float:
    """Spearman correlation; 0 if one side is constant."""
    return _correlation("spearmanr", labels, predictions)


def _correlation(name: str, labels: Numbers, predictions: Numbers) -> float:
    from scipy import stats

    if not np.isfinite([*labels, *predictions]).all():
        raise ValueError("a number is not finite: there is no correlation")
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return 100 * float(getattr(stats, name)(labels, predictions).statistic)


OF_CLASSES: dict[str, Callable[[Classes, Classes], float]] = {"accuracy": accuracy, "f1": f1, "matthews": matthews}
OF_NUMBERS: dict[str, Callable[[Numbers, Numbers], float]] = {"pearson": pearson, "spearman": spearman}
CORRELATIONS = {"matthews", *OF_NUMBERS}
OF_SQUAD1 = ("exact_match", "f1")
OF_SQUAD2 = ("exact", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1")


def label(name: str) -> str:
    """The name of a score in headings, as papers have it."""
    return {"f1": "F1", "exact_match": "EM", "exact": "EM"}.get(name, name)


Answers = Mapping[str, Sequence[str]]  # gold texts by question id; none for an unanswerable question


_PUNCTUATION = frozenset(string.punctuation + "。，、；：？！“”‘’（）《》「」『』【】…—～·")


def normalize_answer(text: str, by_character: bool = False) -> str:
    """The text in lower case, without punctuation and articles, with single spaces (the same in both scripts).

    Args:
        by_character: whether each character of a script without spaces is a word, as in the scripts of DRCD.
    """
    text = "".join(char for char in text.lower() if char not in (_PUNCTUATION if by_character else string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", apart(text) if by_character else text).split())


def counts_characters(answers: Answers) -> bool:
    """Whether most gold texts are in scripts without spaces between words, so that F1 counts characters, as DRCD's."""
    texts = [text for gold in answers.values() for text in gold]
    return 2 * sum(map(is_unspaced, texts)) > len(texts)


def match_squad(answers: Answers, predictions: Mapping[str, str], unanswerable: bool) -> dict[str, dict[str, float]]:
    """The share, from 0 to 1, of each question by name of the score and question id.

    As in evaluate-v1.1.py, or evaluate-v2.0.py if questions may be unanswerable. A question without a prediction counts
    as wrong.
    """
    how = counts_characters(answers)
    if not unanswerable:
        matches = {id: _match(texts, predictions.get(id), 0.0, how) for id, texts in answers.items()}
        return {name: {id: match[at] for id, match in matches.items()} for at, name in enumerate(OF_SQUAD1)}
    # A gold text that consists of articles and punctuation is ignored.
    kept = {id: [text for text in texts if normalize_answer(text, how)] or [""] for id, texts in answers.items()}
    matches = {id: _match(texts, predictions.get(id), 1.0, how) for id, texts in kept.items()}
    has_answer = {id for id, texts in answers.items() if texts}
    parts = {"": set(answers), "HasAns_": has_answer, "NoAns_": answers.keys() - has_answer}
    return {
        f"{part}{name}": {id: match[at] for id, match in matches.items() if id in ids}
        for part, ids in parts.items()
        for at, name in enumerate(("exact", "f1"))
        if ids
    }


def _match(
    texts: Sequence[str], prediction: str | None, f1_of_nothing: float, by_character: bool
) -> tuple[float, float]:
    """Exact match and word F1 with the best gold text; f1_of_nothing if both texts have no word."""
    if prediction is None:
        return 0.0, 0.0
    predicted = normalize_answer(prediction, by_character).split()
    exact = f1 = 0.0
    for text in texts:
        gold = normalize_answer(text, by_character).split()
        same = (Counter(gold) & Counter(predicted)).total()
        if gold == predicted:
            exact = 1.0
        if same:
            precision, recall = same / len(predicted), same / len(gold)
            f1 = max(f1, 2 * precision * recall / (precision + recall))
        elif gold == predicted:
            f1 = max(f1, f1_of_nothing)
    return exact, f1


def best_threshold(answers: Answers, predictions: Mapping[str, str], na_probs: Mapping[str, float]) -> float:
    """The no-answer threshold that gives the best F1, as in evaluate-v2.0.py.

    Questions are answered in the order of na_probs, the no-answer probabilities.
    """
    matches = match_squad(answers, predictions, unanswerable=True)["f1"]
    score = best = float(sum(not texts for texts in answers.values()))
    threshold = 0.0
    for id in sorted(na_probs, key=na_probs.__getitem__):
        if id not in predictions or id not in answers:
            continue
        score += matches[id] if answers[id] else -bool(predictions[id])
        if score > best:
            best, threshold = score, na_probs[id]
    return threshold


def percent(values: Sequence[float]) -> float:
    """The mean, added in a loop like in SQuAD's scripts: the built-in sum rounds differently since Python 3.12."""
    return 100.0 * reduce(add, values) / len(values)
