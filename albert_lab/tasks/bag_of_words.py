"""The floor of bags of words: a linear model of the words of each text, which knows neither their order nor a model."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_lab.data.words import apart, is_unspaced
from albert_lab.tasks.examples import ChoiceExample, SpanExample, subsample

MOST_EXAMPLES = 10_000  # of training: a few seconds of one core
_EPOCHS, _DECAY = 20, 1e-4
_WORD = re.compile(r"\w+")


def bag_of_words(train: Sequence[Any], examples: Sequence[Any]) -> dict[str, Any] | None:
    """The answers by example id of a logistic (for numbers, ridge) regression; None for answers that are spans.

    The words of each text (characters, where a script has no spaces between them) count by themselves; of an option,
    also those that its passage and question have.
    """
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import Ridge, SGDClassifier
    from sklearn.pipeline import make_pipeline

    if isinstance(examples[0], SpanExample):
        return None
    train, ids = subsample(train, MOST_EXAMPLES), [example.id for example in examples]
    has_options = isinstance(train[0], ChoiceExample)
    rows, asked = ([row for example in of for row in _rows(example)] for of in (train, examples))
    targets = [example.label for example in train]
    if has_options:
        targets = [place == example.label for example in train for place in range(len(example.options))]
    if len(set(targets)) == 1:  # in a small subsample
        return dict.fromkeys(ids, targets[0])
    # Averaged weights need no search for a rate; L-BFGS takes ten times as long on pairs of texts.
    fixed: Any = {"tol": None, "max_iter": _EPOCHS}  # all epochs
    classifier = SGDClassifier(loss="log_loss", alpha=_DECAY, average=True, random_state=0, **fixed)
    hasher = FeatureHasher(alternate_sign=False)
    model: Any = make_pipeline(hasher, Ridge() if isinstance(targets[0], float) else classifier).fit(rows, targets)
    if not has_options:
        return dict(zip(ids, model.predict(asked).tolist(), strict=True))
    ends = np.cumsum([len(example.options) for example in examples])[:-1]
    return {id: int(of.argmax()) for id, of in zip(ids, np.split(model.decision_function(asked), ends), strict=True)}


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
    return set(_WORD.findall((apart(text) if is_unspaced(text) else text).lower()))
