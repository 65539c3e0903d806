"""Scores of answers: GLUE's by scikit-learn and scipy, in percent; SQuAD's as in the official
scripts; a floor.

An undefined score is 0, never NaN: a correlation with a constant side, like scikit-learn's Matthews
correlation and F1 in this case. So a model with constant answers scores 0, and its score is not
missing.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from albert_lab.data.words import apart, is_unspaced
from albert_lab.score import by_block
from albert_lab.tasks.examples import ChoiceExample, SpanExample, subsample

Answers = Sequence[Sequence[str]]  # gold texts of each question; none of an unanswerable one
# Of training a bag of words: a few seconds of one core.
MOST_EXAMPLES, _EPOCHS, _MOST_FITS = 10_000, 20, 400
_MOST_WORDS, _MOST_WEIGHTS = 1 << 20, 1 << 23  # into which words are hashed; of all labels
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
    from scipy.stats import pearsonr, spearmanr
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    if name not in ("accuracy", "f1") and 0 in (np.ptp(labels), np.ptp(predictions)):
        return 0.0
    f1: Any = f1_score
    scores: dict[str, Any] = {"accuracy": accuracy_score, "f1": partial(f1, zero_division=0.0)}
    scores |= {"matthews": matthews_corrcoef, "pearson": pearsonr, "spearman": spearmanr}
    score = scores[name](labels, predictions)
    return 100 * float(getattr(score, "statistic", score))


def jackknife(score: Callable[..., float], *sides: Sequence[Any]) -> list[float]:
    """Values of examples whose mean is a score, as a share, and by blocks have its error: for one
    that is no mean.

    They are pseudo-values of the jackknife that leaves out a block (Efron and Tibshirani 1993,
    chapter 11). score gives percents of some of the sides, such as examples and answers.
    """
    sizes, whole = np.array(by_block([0.0] * len(sides[0])).n), score(*sides)
    block = np.repeat(np.arange(len(sizes)), sizes)
    kept = [block != number for number in range(len(sizes))] if len(sizes) > 1 else [block == 0]
    without = np.array([score(*([*compress(side, places)] for side in sides)) for places in kept])
    moved = ((len(block) / sizes - 1) * (whole - without))[block]
    return ((whole + moved - moved.mean()) / 100).tolist()


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
    pairs = zip(golds, map(normalize_answer, predictions), strict=True)
    exact, f1 = zip(*(_match(gold, text, float(unanswerable)) for gold, text in pairs), strict=True)
    if not unanswerable:
        return {"f1": [*f1], "exact_match": [*exact]}
    shares = {}
    for part, has_answer in (("", None), ("HasAns_", True), ("NoAns_", False)):
        chosen = [place for place, gold in enumerate(answers) if has_answer in (None, bool(gold))]
        if chosen:
            shares |= {
                f"{part}f1": [f1[at] for at in chosen],
                f"{part}exact": [exact[at] for at in chosen],
            }
    return shares


def _match(gold: Sequence[str], prediction: str, f1_of_none: float) -> tuple[float, float]:
    """Exact match and word F1 with the best normalized gold text; f1_of_none if both texts have no
    word.
    """
    predicted, exact, f1 = prediction.split(), 0.0, 0.0
    for words in (text.split() for text in gold):
        same = (Counter(words) & Counter(predicted)).total()
        if words == predicted:
            exact, f1 = 1.0, max(f1, float(bool(same)) or f1_of_none)
        elif same:
            precision, recall = same / len(predicted), same / len(words)
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
            best, threshold = score, na_probs[place]
    return threshold


def bag_of_words(train: Sequence[Any], examples: Sequence[Any]) -> list[Any] | None:
    """The answers to examples by a linear model of words, which knows neither their order nor a
    pre-trained model.

    It is a logistic regression, for numbers a ridge regression; None for answers that are spans.
    The words of each text (characters, where a script has no spaces between them) count by
    themselves; of an option, also those that its passage and question have.
    """
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import Ridge, SGDClassifier
    from sklearn.pipeline import make_pipeline

    if isinstance(examples[0], SpanExample):
        return None
    asked = [row for example in examples for row, _ in _rows(example)]
    rows, targets = zip(
        *(one for example in subsample(train, MOST_EXAMPLES) for one in _rows(example)), strict=True
    )
    num_labels = len(set(targets))
    if num_labels == 1:  # in a small subsample
        return [targets[0]] * len(examples)
    width = _MOST_WORDS
    model: Any = Ridge()
    if not isinstance(targets[0], float):
        # Every label has weights of its own, which are fitted apart: many labels have fewer, and
        # fewer epochs.
        width = min(width, _MOST_WEIGHTS // num_labels)
        epochs = max(1, min(_EPOCHS, _MOST_FITS // num_labels))
        # Averaged weights need no search for a rate; L-BFGS takes ten times as long on pairs of
        # texts.
        fixed: Any = {"tol": None, "max_iter": epochs, "alpha": 1e-4}  # all epochs are made
        model = SGDClassifier(loss="log_loss", average=True, random_state=0, **fixed)
    model = make_pipeline(FeatureHasher(width, alternate_sign=False), model).fit(rows, targets)
    if not isinstance(examples[0], ChoiceExample):
        return model.predict(asked).tolist()
    ends = np.cumsum([len(example.options) for example in examples])[:-1]
    return [int(of.argmax()) for of in np.split(model.decision_function(asked), ends)]


def _rows(example: Any) -> Iterator[tuple[Counter[str], Any]]:
    """The words of an example and its label, or those of each of its options and whether it is
    right.
    """
    if not isinstance(example, ChoiceExample):
        yield _counted(*example.texts), example.label
        return
    around = _words(f"{example.passage} {example.question}")
    for place, option in enumerate(example.options):
        yield (
            _counted(option) + Counter(shared=len(around & _words(option))),
            place == example.label,
        )


def _counted(*texts: str) -> Counter[str]:
    # Sorted, so that sums are the same in every process.
    return Counter(
        f"{n} {word}" for n, text in enumerate(texts) for word in sorted(_words(text))
    ) or Counter(nothing=1)


def _words(text: str) -> set[str]:
    return set(re.findall(_WORD, (apart(text) if is_unspaced(text) else text).lower()))
