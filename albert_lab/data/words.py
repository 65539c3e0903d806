"""Words of any script, or characters where a script has no spaces between words; and texts that
repeat others.
"""

import re
from collections.abc import Sequence
from unicodedata import normalize

# Han, kana, Thai, Lao, Tibetan, Myanmar and Khmer.
_UNSPACED = re.compile(
    r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# between spaces and punctuation
_WORD = re.compile(r"[^\s!-/:-@\[-`{-~\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+")
NGRAM = 8


def apart(text: str) -> str:
    """The text with spaces around each character of a script that has none between words; split()
    gives its words.
    """
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


def is_unspaced(text: str) -> bool:
    """Whether a quarter of a text or more is in scripts without spaces; a foreign name in a text is
    not enough.
    """
    return 2 * len(apart(text)) > 3 * len(text)


def ngrams(text: str) -> list[int]:
    """Hashes of n-grams of words, in any case and Unicode form, the same only in this process
    [words - NGRAM + 1].
    """
    words = _WORD.findall(apart(normalize("NFKC", text)).lower())
    return list(map(hash, zip(*(words[start:] for start in range(NGRAM)), strict=False)))


def repeated(document: Sequence[str], known: set[int]) -> list[bool]:
    """Which parts of a document have more than half of their n-grams among known ones, or are of
    such a document.
    """
    if _is_mostly_known(" ".join(document), known):
        return [True] * len(document)
    return [_is_mostly_known(part, known) for part in document]


def _is_mostly_known(text: str, known: set[int]) -> bool:
    hashes = ngrams(text)
    return 2 * sum(map(known.__contains__, hashes)) > len(hashes)
