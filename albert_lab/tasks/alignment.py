"""The tokens of a raw text, each with the characters that it covers: spans of answers become spans
of tokens.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from albert_lab.data.tokenizer import Tokenizer


@dataclass(frozen=True)
class AlignedText:
    """The tokens of a raw text; token i covers text[starts[i]:ends[i]], without surrounding spaces.

    starts and ends ascend. A token that consists of spaces covers an empty range; a comma after a
    digit has no token.
    """

    ids: list[int]
    starts: list[int]
    ends: list[int]

    def tokens_of(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last of the fewest consecutive tokens that cover text[start:end]; None if no
        tokens cover it.
        """
        first = bisect_right(self.ends, start)
        last = bisect_left(self.starts, end) - 1
        while last > first and self.starts[last] == self.ends[last]:
            last -= 1
        return (first, last) if first <= last else None


def align(text: str, tokenizer: Tokenizer) -> AlignedText:
    """The tokens of a text, with the characters that they cover.

    A character that cleaning drops (an accent) belongs to the token before it, or to the next one
    at the start of a word.
    """
    ids, offsets = tokenizer.encode_with_offsets(text)
    starts = []
    ends = []
    reached = 0
    can_be_dropped = [not char.isspace() and char != "," for char in text]
    for first, end in [*offsets, (len(text), len(text))]:
        first = end - len(text[first:end].lstrip())
        end = first + len(text[first:end].rstrip())
        # The release splits the comma off a token such as "2006,"; here an answer ends before the
        # comma.
        if end - first > 1 and text[end - 1] == "," and text[end - 2].isdigit():
            end -= 1
        start = max(reached, first)
        while ends and reached < start and can_be_dropped[reached]:
            ends[-1] = reached = reached + 1
        while start > reached and can_be_dropped[start - 1]:
            start -= 1
        reached = max(start, end)
        starts.append(start)
        ends.append(reached)
    return AlignedText(ids, starts[:-1], ends[:-1])
