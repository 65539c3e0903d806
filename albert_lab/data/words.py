"""Words of any script, or characters where a script has no spaces between words; and texts that repeat others."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

# Han, kana, Thai, Lao, Tibetan, Myanmar and Khmer.
_UNSPACED = re.compile(
    r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_WORD = re.compile(r"[^\s!-/:-@\[-`{-~\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+")  # between spaces and punctuation
NGRAM = 8


def apart(text: str) -> str:
    """The text with spaces around each character of a script that has none between words; split() gives its words."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


def is_unspaced(text: str) -> bool:
    """Whether a quarter of a text or more is in scripts without spaces; a foreign name in a text is not enough."""
    return 2 * len(apart(text)) > 3 * len(text)


class Overlap:
    """Finds texts that repeat some others: more than half of their n-grams of words, in any case, are in one of those.

    A text of fewer words than an n-gram has repeats none.
    """

    def __init__(self) -> None:
        self._added = [np.zeros(0, np.int64)]

    def add(self, texts: Iterable[str]) -> None:
        """Adds texts, before the first question about others."""
        self._added += (_ngrams(_words(text)) for text in texts)

    @cached_property
    def _known(self) -> np.ndarray:
        return np.unique(np.concatenate(self._added))

    def repeated(self, documents: Sequence[Sequence[str]]) -> list[list[bool]]:
        """Which parts of documents repeat the texts, by themselves or with the whole of their document."""
        words = [_words(part) for document in documents for part in document]
        ends = np.cumsum([0, *map(len, words)])  # of the parts
        ngrams = _ngrams([word for part in words for word in part])
        known = np.append(self._known, 0)[np.searchsorted(self._known, ngrams)] == ngrams
        before = np.pad(np.cumsum(known), (1, NGRAM))  # known n-grams before each word

        def repeats(bounds: np.ndarray) -> np.ndarray:
            first, last = bounds[:-1], np.maximum(bounds[:-1], bounds[1:] - NGRAM + 1)
            return 2 * (before[last] - before[first]) > last - first

        sizes = np.array([len(document) for document in documents], int)
        whole = repeats(ends[np.cumsum([0, *sizes])])
        flags = iter((repeats(ends) | np.repeat(whole, sizes)).tolist())
        return [[next(flags) for _ in document] for document in documents]


def _words(text: str) -> list[str]:
    return _WORD.findall(apart(text).lower())


def _ngrams(words: Sequence[str]) -> np.ndarray:
    """Hashes of the n-grams of words, the same only within this process [words - NGRAM + 1]."""
    return np.fromiter(map(hash, zip(*(words[start:] for start in range(NGRAM)), strict=False)), np.int64)
