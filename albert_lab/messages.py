"""Progress messages of long work: functions that receive one line for the user."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
Say = Callable[[str], None]

EVERY_SECONDS = 10.0


def quiet(_line: str) -> None:
    """Discard the line."""


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def with_progress(items: Iterable[T], number: int, line: str, say: Say, every: float = EVERY_SECONDS) -> Iterator[T]:
    """Yields the items, and regularly reports how many of them are finished.

    Args:
        line: what is said, with two places {}: for the numbers of finished and of all items.
    """
    spoken = time.monotonic()
    for count, item in enumerate(items):
        if time.monotonic() - spoken >= every:
            spoken = time.monotonic()
            say(line.format(f"{count:,}", f"{number:,}"))
        yield item
