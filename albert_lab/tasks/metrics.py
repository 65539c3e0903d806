"""Scores of answers: GLUE's by scikit-learn and scipy, in percent; SQuAD's as in the official scripts.

An undefined score is 0, never NaN: a correlation with a constant side, like scikit-learn's Matthews correlation and F1
in this case. So a model with constant answers scores 0, and its score is not missing.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import add

import numpy as np

from albert_lab.data.words import apart, is_unspaced

Numbers = Sequence[float]


def accuracy(labels: Sequence[int], predictions: Sequence[int]) -> float:
    """Share of right predictions."""
    return 100 * float(np.mean(np.equal(labels, predictions)))


def f1(labels: Sequence[int], predictions: Sequence[int]) -> float:
    """F1 of class 1 of two classes; 0 if it occurs on neither side."""
    from sklearn.metrics import f1_score

    return 100 * float(f1_score(labels, predictions, pos_label=1, zero_division=0.0))  # pyright: ignore[reportArgumentType]


def matthews(labels: Sequence[int], predictions: Sequence[int]) -> float:
    """Matthews correlation; 0 if one side has a single class."""
    from sklearn.metrics import matthews_corrcoef

    # scikit-learn gives 0 for a single class on both sides too, with a warning.
    return 0.0 if len({*labels, *predictions}) == 1 else 100 * float(matthews_corrcoef(labels, predictions))


def correlation(name: str, labels: Numbers, predictions: Numbers) -> float:
    """A correlation of scipy.stats, by the name of its function; 0 if one side is constant."""
    from scipy import stats

    if not np.isfinite([*labels, *predictions]).all():
        raise ValueError("a number is not finite: there is no correlation")
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return 100 * float(getattr(stats, name)(labels, predictions).statistic)


OF_CLASSES: dict[str, Callable[[Sequence[int], Sequence[int]], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
}
OF_NUMBERS: dict[str, Callable[[Numbers, Numbers], float]] = {
    "pearson": partial(correlation, "pearsonr"),
    "spearman": partial(correlation, "spearmanr"),
}
CORRELATIONS = {"matthews", *OF_NUMBERS}
OF_SQUAD1 = ("exact_match", "f1")
OF_SQUAD2 = ("exact", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1")
Answers = Mapping[str, Sequence[str]]  # gold texts by question id; none for an unanswerable question
_PUNCTUATION = frozenset(string.punctuation + "。，、；：？！“”‘’（）《》「」『』【】…—～·")


def label(name: str) -> str:
    """The name of a score in headings, as papers have it."""
    return {"f1": "F1", "exact_match": "EM", "exact": "EM"}.get(name, name)


def normalize_answer(text: str, by_character: bool = False) -> str:
    """The text in lower case, without punctuation and articles, with single spaces (the same in both scripts).

    Args:
        by_character: whether each character of a script without spaces is a word, as in the scripts of DRCD.
    """
    text = "".join(char for char in text.lower() if char not in (_PUNCTUATION if by_character else string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", apart(text) if by_character else text).split())


def match_squad(answers: Answers, predictions: Mapping[str, str], unanswerable: bool) -> dict[str, dict[str, float]]:
    """The share, from 0 to 1, of each question by name of the score and question id.

    As in evaluate-v1.1.py, or evaluate-v2.0.py if questions may be unanswerable. A question without a prediction counts
    as wrong.
    """
    # F1 counts characters, as in the scripts of DRCD, if most gold texts have no spaces between words.
    texts = [text for gold in answers.values() for text in gold]
    by_character = 2 * sum(map(is_unspaced, texts)) > len(texts)
    kept = answers
    if unanswerable:  # a gold text that consists of articles and punctuation is ignored
        kept = {
            id: [text for text in gold if normalize_answer(text, by_character)] or [""] for id, gold in answers.items()
        }
    matches = {id: _match(gold, predictions.get(id), float(unanswerable), by_character) for id, gold in kept.items()}
    if not unanswerable:
        return {name: {id: match[at] for id, match in matches.items()} for at, name in enumerate(OF_SQUAD1)}
    has_answer = {id for id, gold in answers.items() if gold}
    parts = {"": set(answers), "HasAns_": has_answer, "NoAns_": answers.keys() - has_answer}
    return {
        f"{part}{name}": {id: match[at] for id, match in matches.items() if id in ids}
        for part, ids in parts.items()
        for at, name in enumerate(("exact", "f1"))
        if ids
    }


def _match(gold: Sequence[str], prediction: str | None, f1_of_none: float, by_character: bool) -> tuple[float, float]:
    """Exact match and word F1 with the best gold text; f1_of_none if both texts have no word."""
    if prediction is None:
        return 0.0, 0.0
    predicted = normalize_answer(prediction, by_character).split()
    exact = f1 = 0.0
    for text in gold:
        words = normalize_answer(text, by_character).split()
        same = (Counter(words) & Counter(predicted)).total()
        if words == predicted:
            exact, f1 = 1.0, max(f1, float(bool(same)) or f1_of_none)
        elif same:
            precision, recall = same / len(predicted), same / len(words)
            f1 = max(f1, 2 * precision * recall / (precision + recall))
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
