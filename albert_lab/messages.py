"""Messages to the user: progress of long work, times and sizes as text."""

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


def duration(seconds: float) -> str:
    """Seconds as text in the largest unit that fits."""
    for unit, length in (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} s"


def size(num_bytes: float) -> str:
    """Bytes as text in the largest unit that fits, from KiB."""
    for unit, length in (("GiB", 2**30), ("MiB", 2**20)):
        if num_bytes >= length:
            return f"{num_bytes / length:,.1f} {unit}"
    return f"{num_bytes / 2**10:,.1f} KiB"
