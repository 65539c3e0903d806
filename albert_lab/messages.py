"""Messages to the user: lines, and times as text."""

import re
import sys
from collections.abc import Callable

from albert_lab.errors import is_full

Say = Callable[[str], None]


def to_stderr(line: str) -> None:
    """Print a line on stderr; a log on a full disk lacks it, which is no reason to end what goes on."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError as error:
        if not is_full(error):
            raise


def printable(text: str) -> str:
    """Text of a user or of a record on one line: its control characters and white space are spaces."""
    return re.sub(r"\s+", " ", "".join(char if char.isprintable() else " " for char in text))


def duration(seconds: float) -> str:
    """Seconds as text in the largest unit that fits."""
    for unit, length in (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} s"
