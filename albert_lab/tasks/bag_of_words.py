"""The floor of bags of words: a linear model of the words of each text, which knows neither their order nor a model."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_lab.data.words import apart, is_unspaced
from albert_lab.tasks.examples import ChoiceExample, SpanExample, TextExample, subsample

MOST_EXAMPLES = 10_000  # of training: a few seconds of one core
_EPOCHS, _DECAY = 20, 1e-4
_WORD = re.compile(r"\w+")
_Words = Counter[str]


def bag_of_words(train: Sequence[Any], examples: Sequence[Any]) -> dict[str, Any] | None:
    """The answers by example id of a logistic (for numbers, ridge) regression; None for answers that are spans.

    The words of each text (characters, where a script has no spaces between them) count by themselves; of an option,
    also those that its passage and question have.
    """
    if isinstance(examples[0], SpanExample):
        return None
    train = subsample(train, MOST_EXAMPLES)
    answer = _options if isinstance(train[0], ChoiceExample) else _labels
    return dict(zip((example.id for example in examples), answer(train, examples), strict=True))


def _labels(train: Sequence[TextExample], examples: Sequence[TextExample]) -> Sequence[Any]:
    targets = [example.label for example in train]
    if len(set(targets)) == 1:  # in a small subsample
        return [targets[0]] * len(examples)
    model = _model(is_number=isinstance(targets[0], float))
    model.fit([_texts(example.text_a, example.text_b or "") for example in train], targets)
    return model.predict([_texts(example.text_a, example.text_b or "") for example in examples]).tolist()


def _options(train: Sequence[ChoiceExample], examples: Sequence[ChoiceExample]) -> list[int]:
    model = _model(is_number=False)
    is_right = [place == example.label for example in train for place in range(len(example.options))]
    model.fit([words for example in train for words in _of_options(example)], is_right)
    scores = model.decision_function([words for example in examples for words in _of_options(example)])
    ends = np.cumsum([len(example.options) for example in examples])[:-1]
    return [int(of.argmax()) for of in np.split(scores, ends)]


def _model(is_number: bool) -> Any:
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import Ridge, SGDClassifier
    from sklearn.pipeline import make_pipeline

    # Averaged weights need no search for a rate; L-BFGS takes ten times as long on pairs of texts.
    fixed: Any = {"tol": None, "max_iter": _EPOCHS}  # all epochs
    classifier = SGDClassifier(loss="log_loss", alpha=_DECAY, average=True, random_state=0, **fixed)
    return make_pipeline(FeatureHasher(alternate_sign=False), Ridge() if is_number else classifier)


def _texts(*texts: str) -> _Words:
    """The words of texts, each word once a text; sorted, so that sums are the same in every process."""
    counted = Counter(f"{place} {word}" for place, text in enumerate(texts) for word in sorted(_words(text)))
    return counted or Counter(nothing=1)


def _of_options(example: ChoiceExample) -> list[_Words]:
    around = _words(f"{example.passage} {example.question}")
    return [_texts(option) + Counter(shared=len(around & _words(option))) for option in example.options]


def _words(text: str) -> set[str]:
    return set(_WORD.findall((apart(text) if is_unspaced(text) else text).lower()))
