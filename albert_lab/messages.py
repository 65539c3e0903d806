"""Progress reports of long work: a function that takes one line for the user."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
Say = Callable[[str], None]

EVERY_SECONDS = 10.0


def quiet(_line: str) -> None:
    """Say nothing."""


def to_stderr(line: str) -> None:
    """Say the line on stderr at once."""
    print(line, file=sys.stderr, flush=True)


def with_progress(items: Iterable[T], number: int, words: str, say: Say, every: float = EVERY_SECONDS) -> Iterator[T]:
    """The items, with a line now and then on how many of them are through.

    Args:
        items: what is worked on.
        number: how many there are.
        words: the line, with places for how many are through and how many there are.
        say: takes the line.
        every: seconds between lines; the first comes after so many.
    """
    spoken = time.monotonic()
    for count, item in enumerate(items):
        if time.monotonic() - spoken >= every:
            spoken = time.monotonic()
            say(words.format(f"{count:,}", f"{number:,}"))
        yield item
