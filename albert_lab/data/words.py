"""Words of any script: text between spaces, or single characters where a script has no spaces between words."""

import re

# Han, kana, Thai, Lao, Tibetan, Myanmar and Khmer.
_UNSPACED = re.compile(
    r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def apart(text: str) -> str:
    """The text with spaces around each character of a script that has none between words; split() gives its words."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


def is_unspaced(text: str) -> bool:
    """Whether a quarter of a text or more is in scripts without spaces; a foreign name in a text is not enough."""
    return 2 * len(apart(text)) > 3 * len(text)
