"""Tokens of a text, each with its span of characters in the raw text."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from albert_lab.config.data import CorpusConfig
from albert_lab.data.sentences import clean
from albert_lab.data.tokenizer.base import Tokenizer


@dataclass(frozen=True)
class AlignedText:
    """A raw text and its tokens; token i covers text[starts[i]:ends[i]], without surrounding spaces.

    starts and ends ascend. A token that consists of spaces covers an empty range; a comma after a digit has no token.
    """

    text: str
    ids: list[int]
    starts: list[int]
    ends: list[int]

    def tokens_of(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last of the fewest consecutive tokens that cover text[start:end]; None if no tokens cover it."""
        first = bisect_right(self.ends, start)
        last = bisect_left(self.starts, end) - 1
        while last > first and self.starts[last] == self.ends[last]:
            last -= 1
        return (first, last) if first <= last else None


def align(text: str, corpus: CorpusConfig, tokenizer: Tokenizer) -> AlignedText:
    """The tokens of a text, cleaned like the corpus, with the raw characters that they cover."""
    cleaned = clean(text, corpus)
    begins, ends = _origins(text, corpus)
    assert len(begins) == len(cleaned), "cleaning and its map disagree"
    ids, offsets = tokenizer.encode_with_offsets(cleaned)
    aligned = AlignedText(text, ids, [], [])
    reached = 0
    for first, end in offsets:
        while first < end and cleaned[first].isspace():
            first += 1
        while first < end and cleaned[end - 1].isspace():
            end -= 1
        # The release splits the comma off a token such as "2006,"; here an answer ends before the comma.
        if end - first > 1 and cleaned[end - 1] == "," and cleaned[end - 2].isdigit():
            end -= 1
        start = max(reached, begins[first] if first < len(begins) else len(text))
        reached = max(start, ends[end - 1]) if first < end else start
        aligned.starts.append(start)
        aligned.ends.append(reached)
    return aligned


def _origins(text: str, corpus: CorpusConfig) -> tuple[list[int], list[int]]:
    """Start and end in the raw text of each character of the cleaned text; see sentences.clean.

    A dropped character (an accent) belongs to the previous character, or to the next one at the start of a word.
    """
    begins: list[int] = []
    ends: list[int] = []
    for number, word in enumerate(re.finditer(r"\S+", text)):
        if number:
            begins.append(ends[-1] if ends else 0)
            ends.append(word.start())
        if word.group().isascii():
            begins.extend(range(*word.span()))
            ends.extend(range(word.start() + 1, word.end() + 1))
            continue
        first_of_word, begin = len(begins), word.start()
        for place in range(word.start(), word.end()):
            for _ in range(_cleaned_length(text[place], corpus)):
                begins.append(begin)
                ends.append(place + 1)
            if begins and ends[-1] == place + 1:
                begin = place + 1
            elif len(begins) > first_of_word:
                ends[-1] = begin = place + 1
    return begins, ends


def _cleaned_length(char: str, corpus: CorpusConfig) -> int:
    if char.isascii():
        return 1
    if corpus.strip_accents:
        char = "".join(part for part in unicodedata.normalize("NFKD", char) if not unicodedata.combining(part))
    return len(char.lower() if corpus.lower_case else char)
