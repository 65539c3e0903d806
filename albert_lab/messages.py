"""Messages to the user: what is printed, and times as text."""

import re
import sys
from collections.abc import Callable

from albert_lab.errors import is_full

YEAR = 365.25 * 86400  # seconds
Say = Callable[[str], None]
# what joins letters and emoji, and spaces at which no line ends
_HARMLESS = "\u200c\u200d\u00a0\u202f"


def to_stdout(text: str) -> None:
    """Print text of any number of lines on stdout."""
    print(visible_lines(text), flush=True)


def to_stderr(line: str) -> None:
    """Print a line on stderr; a log on a full or failing disk lacks it, which is no reason to end
    what goes on.
    """
    try:
        print(visible(line), file=sys.stderr, flush=True)
    except OSError as error:
        if not is_full(error):
            raise


def visible(text: str) -> str:
    """Text in which every character can be seen: one that controls a terminal or turns the text
    around is an escape.

    Titles, labels, reasons and names of folders come from others, so nothing is printed without
    this. An escape such as \\u001b is valid in JSON too.
    """
    return "".join(
        char if char.isprintable() or char in _HARMLESS else f"\\u{ord(char):04x}" for char in text
    )


def visible_lines(text: str) -> str:
    """Text of several lines, each of them visible."""
    return "\n".join(visible(line) for line in text.split("\n"))


def printable(text: str) -> str:
    """Text of a user or of a record on one line: white space is a space, and all else visible."""
    return visible(re.sub(r"\s+", " ", text))


def counted(number: int, name: str) -> str:
    """A number of things with their name, which has a plural in s."""
    return f"{number:,} {name}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """Seconds as text in the largest unit that fits, with two digits: 49 min, 3.9 h, 3 million
    years.
    """
    million_years = 1e6 * YEAR
    units = {"million years": million_years, "years": YEAR, "days": 86400, "h": 3600, "min": 60}
    for unit, length in units.items():
        if seconds >= 2 * length:
            return f"{float(f'{seconds / length:.2g}'):,.12g} {unit}"
    return f"{seconds:,.0f} s"
