"""Scores of answers: GLUE's by scikit-learn and scipy, in percent; SQuAD's as in the official scripts; a floor.

An undefined score is 0, never NaN: a correlation with a constant side, like scikit-learn's Matthews correlation and F1
in this case. So a model with constant answers scores 0, and its score is not missing.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from albert_lab.data.words import apart, is_unspaced
from albert_lab.tasks.examples import ChoiceExample, SpanExample, subsample

OF_SQUAD1 = ("exact_match", "f1")
OF_SQUAD2 = ("exact", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1")
Answers = Sequence[Sequence[str]]  # gold texts of each question; none of an unanswerable one
MOST_EXAMPLES = 10_000  # of training a bag of words: a few seconds of one core
_EPOCHS, _DECAY = 20, 1e-4
_PUNCTUATION = frozenset(string.punctuation + "。，、；：？！“”‘’（）《》「」『』【】…—～·")


def of_classes(name: str, labels: Sequence[int], predictions: Sequence[int], **options: Any) -> float:
    """A score of sklearn.metrics, by the name of its function; F1 is that of class 1 of two classes."""
    from sklearn import metrics

    # scikit-learn's Matthews correlation is 0 for a single class on both sides too, with a warning.
    if name == "matthews_corrcoef" and len({*labels, *predictions}) == 1:
        return 0.0
    return 100 * float(getattr(metrics, name)(labels, predictions, **options))


def of_numbers(name: str, labels: Sequence[float], predictions: Sequence[float]) -> float:
    """A correlation of scipy.stats, by the name of its function; 0 if one side is constant."""
    from scipy import stats

    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return 100 * float(getattr(stats, name)(labels, predictions).statistic)


OF_CLASSES = {
    "accuracy": partial(of_classes, "accuracy_score"),
    "f1": partial(of_classes, "f1_score", zero_division=0.0),
    "matthews": partial(of_classes, "matthews_corrcoef"),
}
OF_NUMBERS = {"pearson": partial(of_numbers, "pearsonr"), "spearman": partial(of_numbers, "spearmanr")}


def normalize_answer(text: str, by_character: bool = False) -> str:
    """The text in lower case, without punctuation and articles, with single spaces (the same in both scripts).

    Args:
        by_character: whether each character of a script without spaces is a word, as in the scripts of DRCD.
    """
    text = "".join(char for char in text.lower() if char not in (_PUNCTUATION if by_character else string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", apart(text) if by_character else text).split())


def match_squad(answers: Answers, predictions: Sequence[str], unanswerable: bool) -> dict[str, list[float]]:
    """The share, from 0 to 1, of each question by name of the score; of those with or without an answer, as it says.

    As in evaluate-v1.1.py, or evaluate-v2.0.py if questions may be unanswerable.
    """
    # F1 counts characters, as in the scripts of DRCD, if most gold texts have no spaces between words.
    texts = [text for gold in answers for text in gold]
    normalize = partial(normalize_answer, by_character=2 * sum(map(is_unspaced, texts)) > len(texts))
    golds = [[normalize(text) for text in gold] for gold in answers]
    if unanswerable:  # a gold text that consists of articles and punctuation is ignored
        golds = [[text for text in gold if text] or [""] for gold in golds]
    pairs = zip(golds, map(normalize, predictions), strict=True)
    matches = np.array([_match(gold, text, float(unanswerable)) for gold, text in pairs])
    has_answer = np.array([bool(gold) for gold in answers])
    parts = {"": has_answer | True}
    if unanswerable:
        parts |= {"HasAns_": has_answer, "NoAns_": ~has_answer}
    return {
        f"{part}{name}": matches[chosen, at].tolist()
        for part, chosen in parts.items()
        for at, name in enumerate(OF_SQUAD2[:2] if unanswerable else OF_SQUAD1)
        if chosen.any()
    }


def _match(gold: Sequence[str], prediction: str, f1_of_none: float) -> tuple[float, float]:
    """Exact match and word F1 with the best normalized gold text; f1_of_none if both texts have no word."""
    predicted, exact, f1 = prediction.split(), 0.0, 0.0
    for words in (text.split() for text in gold):
        same = (Counter(words) & Counter(predicted)).total()
        if words == predicted:
            exact, f1 = 1.0, max(f1, float(bool(same)) or f1_of_none)
        elif same:
            precision, recall = same / len(predicted), same / len(words)
            f1 = max(f1, 2 * precision * recall / (precision + recall))
    return exact, f1


def best_threshold(answers: Answers, predictions: Sequence[str], na_probs: Sequence[float]) -> float:
    """The no-answer threshold that gives the best F1, as in evaluate-v2.0.py.

    Questions are answered in the order of na_probs, the no-answer probabilities.
    """
    matches = match_squad(answers, predictions, unanswerable=True)["f1"]
    score = best = float(sum(not texts for texts in answers))
    threshold = 0.0
    for place in sorted(range(len(matches)), key=na_probs.__getitem__):
        score += matches[place] if answers[place] else -bool(predictions[place])
        if score > best:
            best, threshold = score, na_probs[place]
    return threshold


def percent(values: Sequence[float]) -> float:
    """The mean, added in a loop like in SQuAD's scripts: the built-in sum rounds differently since Python 3.12."""
    return 100.0 * reduce(add, values) / len(values)


def bag_of_words(train: Sequence[Any], examples: Sequence[Any]) -> list[Any] | None:
    """The answers to examples by a linear model of words, which knows neither their order nor a pre-trained model.

    It is a logistic regression, for numbers a ridge regression; None for answers that are spans.
    The words of each text (characters, where a script has no spaces between them) count by themselves; of an option,
    also those that its passage and question have.
    """
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import Ridge, SGDClassifier
    from sklearn.pipeline import make_pipeline

    if isinstance(examples[0], SpanExample):
        return None
    train = subsample(train, MOST_EXAMPLES)
    has_options = isinstance(train[0], ChoiceExample)
    rows, asked = ([row for example in of for row in _rows(example)] for of in (train, examples))
    targets = [example.label for example in train]
    if has_options:
        targets = [place == example.label for example in train for place in range(len(example.options))]
    if len(set(targets)) == 1:  # in a small subsample
        return [targets[0]] * len(examples)
    # Averaged weights need no search for a rate; L-BFGS takes ten times as long on pairs of texts.
    fixed: Any = {"tol": None, "max_iter": _EPOCHS}  # all epochs
    classifier = SGDClassifier(loss="log_loss", alpha=_DECAY, average=True, random_state=0, **fixed)
    hasher = FeatureHasher(alternate_sign=False)
    model: Any = make_pipeline(hasher, Ridge() if isinstance(targets[0], float) else classifier).fit(rows, targets)
    if not has_options:
        return model.predict(asked).tolist()
    ends = np.cumsum([len(example.options) for example in examples])[:-1]
    return [int(of.argmax()) for of in np.split(model.decision_function(asked), ends)]


def _rows(example: Any) -> list[Counter[str]]:
    """The words of an example, or of each of its options, each word once a text."""
    if not isinstance(example, ChoiceExample):
        return [_counted(*example.texts)]
    around = _words(f"{example.passage} {example.question}")
    return [_counted(option) + Counter(shared=len(around & _words(option))) for option in example.options]


def _counted(*texts: str) -> Counter[str]:
    # Sorted, so that sums are the same in every process.
    counted = Counter(f"{place} {word}" for place, text in enumerate(texts) for word in sorted(_words(text)))
    return counted or Counter(nothing=1)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", (apart(text) if is_unspaced(text) else text).lower()))
