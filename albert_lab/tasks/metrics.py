"""Scores of answers: GLUE's by scikit-learn and scipy, in percent; SQuAD's as in the official
scripts; a floor.

An undefined score is 0, never NaN: a correlation with a constant side, like scikit-learn's Matthews
correlation and F1 in this case. So a model with constant answers scores 0, and its score is not
missing.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from albert_lab.data.words import apart, is_unspaced
from albert_lab.score import by_block
from albert_lab.tasks.examples import ChoiceExample, SpanExample, subsample

Answers = Sequence[Sequence[str]]  # gold texts of each question; none of an unanswerable one
# Bounds of training a bag of words, which takes a few seconds of one core.
MOST_EXAMPLES = 10_000
_EPOCHS = 20
_MOST_WORDS = 1 << 20  # into which words are hashed
_MOST_WEIGHTS = 1 << 23  # of all labels
# \w lacks the vowel signs and other marks of Hebrew, Arabic, and the scripts of South and
# South-East Asia.
_WORD = (
    r"[\w\u0591-\u05c7\u0610-\u065f\u0900-\u0963\u0966-\u0df3\u0e31-\u0e4e"
    r"\u102b-\u103e\u1780-\u17d3\u200d]+"
)


def of_glue(name: str, labels: Sequence[float], predictions: Sequence[float]) -> float:
    """A score of GLUE in percent: one of OF_CLASSES, whose F1 is that of class 1 of two, or one of
    OF_NUMBERS.
    """
    from scipy import stats
    from sklearn import metrics

    scorers: dict[str, Callable[..., Any]] = {
        "accuracy": metrics.accuracy_score,
        "f1": partial(metrics.f1_score, zero_division=0.0),  # pyright: ignore[reportArgumentType]
        "matthews": metrics.matthews_corrcoef,
        "pearson": stats.pearsonr,
        "spearman": stats.spearmanr,
    }
    if name in ("pearson", "spearman") and 0 in (np.ptp(labels), np.ptp(predictions)):
        return 0.0
    score = scorers[name](labels, predictions)
    return 100 * float(getattr(score, "statistic", score))


def jackknife(score: Callable[..., float], *sides: Sequence[Any]) -> list[float]:
    """Values of examples whose mean is a score, as a share, and by blocks have its error: for one
    that is no mean.

    They are pseudo-values of the jackknife that leaves out a block (Efron and Tibshirani 1993,
    chapter 11). score gives percents of some of the sides, such as examples and answers.
    """
    whole = score(*sides)
    sizes = np.array(by_block([0.0] * len(sides[0])).n)
    if len(sizes) == 1:
        return [whole / 100] * len(sides[0])
    blocks = np.arange(len(sizes))
    block_of = np.repeat(blocks, sizes)
    without = []  # the score without each block
    for block in blocks:
        kept = block_of != block
        without.append(score(*([*compress(side, kept)] for side in sides)))
    effects = (len(block_of) / sizes - 1) * (whole - np.array(without))
    effects = effects[block_of]
    return ((whole + effects - effects.mean()) / 100).tolist()


def normalize_answer(text: str) -> str:
    """The text in lower case, without punctuation and articles, with single spaces (the same in
    both scripts).
    """
    text = "".join(char for char in text.lower() if char not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def match_squad(
    answers: Answers, predictions: Sequence[str], unanswerable: bool
) -> dict[str, list[float]]:
    """The share, from 0 to 1, of each question by name of the score; of those with or without an
    answer, as it says.

    As in evaluate-v1.1.py, or evaluate-v2.0.py if questions may be unanswerable.
    """
    golds = [[normalize_answer(text) for text in gold] for gold in answers]
    if unanswerable:  # a gold text that consists of articles and punctuation is ignored
        golds = [[text for text in gold if text] or [""] for gold in golds]
    exact = []
    f1 = []
    for gold, prediction in zip(golds, predictions, strict=True):
        is_exact, overlap = _match(gold, normalize_answer(prediction), float(unanswerable))
        exact.append(is_exact)
        f1.append(overlap)
    if not unanswerable:
        return {"f1": f1, "exact_match": exact}
    shares = {"f1": f1, "exact": exact}
    has_answer = [*map(bool, answers)]
    for part, chosen in (("HasAns", has_answer), ("NoAns", [not it for it in has_answer])):
        if any(chosen):
            shares[f"{part}_f1"] = [*compress(f1, chosen)]
            shares[f"{part}_exact"] = [*compress(exact, chosen)]
    return shares


def _match(gold: Sequence[str], prediction: str, f1_of_none: float) -> tuple[float, float]:
    """Exact match and word F1 with the best normalized gold text; f1_of_none if both texts have no
    word.
    """
    predicted = prediction.split()
    exact = f1 = 0.0
    for text in gold:
        words = text.split()
        shared = (Counter(words) & Counter(predicted)).total()
        if words == predicted:
            exact = 1.0
            f1 = max(f1, 1.0 if words else f1_of_none)
        elif shared:
            precision = shared / len(predicted)
            recall = shared / len(words)
            f1 = max(f1, 2 * precision * recall / (precision + recall))
    return exact, f1


def best_threshold(
    answers: Answers, predictions: Sequence[str], na_probs: Sequence[float]
) -> float:
    """The no-answer threshold that gives the best F1, as in evaluate-v2.0.py.

    Questions are answered in the order of na_probs, the no-answer probabilities.
    """
    matches = match_squad(answers, predictions, unanswerable=True)["f1"]
    score = best = float(sum(not texts for texts in answers))
    threshold = 0.0
    for place in sorted(range(len(matches)), key=na_probs.__getitem__):
        score += matches[place] if answers[place] else -bool(predictions[place])
        if score > best:
            best = score
            threshold = na_probs[place]
    return threshold


def bag_of_words(train: Sequence[Any], examples: Sequence[Any]) -> list[Any] | None:
    """The answers to examples by a linear model of words, which knows neither their order nor a
    pre-trained model.

    It is a logistic regression, for numbers a ridge regression; None for answers that are spans.
    The words of each text (characters, where a script has no spaces between them) count by
    themselves; of an option, also those that its passage and question have.
    """
    if isinstance(examples[0], SpanExample):
        return None
    rows, targets = _table(subsample(train, MOST_EXAMPLES))
    if len(set(targets)) == 1:  # in a small subsample
        return [targets[0]] * len(examples)
    model = _linear_model(targets).fit(rows, targets)
    asked, _ = _table(examples)
    if not isinstance(examples[0], ChoiceExample):
        return model.predict(asked).tolist()
    ends = np.cumsum([len(example.options) for example in examples])[:-1]
    return [int(scores.argmax()) for scores in np.split(model.decision_function(asked), ends)]


def _linear_model(targets: Sequence[Any]) -> Any:
    """A model of counts of words, which are hashed; that of labels depends on their number."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import Ridge, SGDClassifier
    from sklearn.pipeline import make_pipeline

    width = _MOST_WORDS
    if isinstance(targets[0], float):
        model = Ridge()
    else:
        # Every label has weights of its own: many labels have fewer.
        width = min(width, _MOST_WEIGHTS // len(set(targets)))
        # Averaged weights need no search for a rate; L-BFGS takes ten times as long on pairs of
        # texts. All epochs are made (tol).
        fixed: Any = {"tol": None, "max_iter": _EPOCHS, "alpha": 1e-4, "random_state": 0}
        model = SGDClassifier(loss="log_loss", average=True, **fixed)
    return make_pipeline(FeatureHasher(width, alternate_sign=False), model)


def _table(examples: Sequence[Any]) -> tuple[list[Counter[str]], list[Any]]:
    """The words and the label of each example; of options, the words of each and whether it is
    right.
    """
    rows = []
    targets = []
    for example in examples:
        if not isinstance(example, ChoiceExample):
            rows.append(_counted(example.text_a, example.text_b or ""))
            targets.append(example.label)
            continue
        around = _words(f"{example.passage} {example.question}")
        for place, option in enumerate(example.options):
            num_shared = len(around & _words(option))
            rows.append(_counted(option) + Counter(shared=num_shared))
            targets.append(place == example.label)
    return rows, targets


def _counted(*texts: str) -> Counter[str]:
    """The words of each text, marked by the number of the text."""
    counts = Counter[str]()
    for number, text in enumerate(texts):
        # Sorted, so that sums are the same in every process.
        counts.update(f"{number} {word}" for word in sorted(_words(text)))
    return counts or Counter(nothing=1)


def _words(text: str) -> set[str]:
    return set(re.findall(_WORD, (apart(text) if is_unspaced(text) else text).lower()))
