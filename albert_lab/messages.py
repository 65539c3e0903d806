"""Messages to the user: lines, times and sizes as text."""

import sys
from collections.abc import Callable

Say = Callable[[str], None]
EVERY_SECONDS = 10.0  # a line of progress


def quiet(_line: str) -> None:
    """Discard the line."""


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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
