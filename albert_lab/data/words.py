"""Words of any script, or characters where a script has no spaces between words; and texts that repeat others."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain

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
        self._known: set[int] = set()  # hashes of n-grams

    def add(self, texts: Iterable[str]) -> None:
        """Adds texts, before the first question about others."""
        for text in texts:
            self._known.update(_ngrams(_words(text)))

    def repeated(self, document: Sequence[str]) -> list[bool]:
        """Which parts of a document repeat the texts, by themselves or with the whole of the document."""
        parts = [_words(part) for part in document]
        is_whole = self._repeats(list(chain.from_iterable(parts)))
        return [is_whole or self._repeats(part) for part in parts]

    def _repeats(self, words: Sequence[str]) -> bool:
        ngrams = _ngrams(words)
        return 2 * sum(map(self._known.__contains__, ngrams)) > len(ngrams)


def _words(text: str) -> list[str]:
    return _WORD.findall(apart(text).lower())


def _ngrams(words: Sequence[str]) -> list[int]:
    """Hashes of the n-grams of words, the same only within this process [words - NGRAM + 1]."""
    return list(map(hash, zip(*(words[start:] for start in range(NGRAM)), strict=False)))
