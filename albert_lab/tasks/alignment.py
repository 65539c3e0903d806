"""Tokens of a text, each with its span of characters in the raw text."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from albert_lab.config.schema import CorpusConfig
from albert_lab.data.sentences import clean
from albert_lab.data.tokenizer.base import Tokenizer


@dataclass(frozen=True)
class AlignedText:
    """A raw text and its tokens; token i covers text[starts[i]:ends[i]], without space around it.

    Both ascend. A token of nothing but space has an empty stretch; a comma after a digit has no token.
    """

    text: str
    ids: list[int]
    starts: list[int]
    ends: list[int]

    def tokens_of(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last token of the shortest stretch of tokens that covers text[start:end]; None where none does."""
        first = bisect_right(self.ends, start)
        last = bisect_left(self.starts, end) - 1
        while last > first and self.starts[last] == self.ends[last]:
            last -= 1
        return (first, last) if first <= last else None


def align(text: str, corpus: CorpusConfig, tokenizer: Tokenizer) -> AlignedText:
    """The tokens of a text, cleaned as the corpus is, with the raw characters that they cover."""
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
        # Where the release cuts the comma off a token such as "2006,", an answer here ends before it.
        if end - first > 1 and cleaned[end - 1] == "," and cleaned[end - 2].isdigit():
            end -= 1
        start = max(reached, begins[first] if first < len(begins) else len(text))
        reached = max(start, ends[end - 1]) if first < end else start
        aligned.starts.append(start)
        aligned.ends.append(reached)
    return aligned


def _origins(text: str, corpus: CorpusConfig) -> tuple[list[int], list[int]]:
    """For each character of the cleaned text, where in the raw text it begins and ends; see corpus.clean.

    What cleaning drops, an accent, belongs to the character before it, or to the next one at the start of a word.
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
