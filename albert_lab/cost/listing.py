"""A table with notes below it, for the terminal and as plain data."""

import shutil
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from tabulate import tabulate

from albert_lab.units import Bytes, Seconds, duration, size

WIDTH = 100  # of notes, in characters


@dataclass(frozen=True)
class Listing:
    """A table with notes below it, as text and as plain data: Seconds and Bytes are numbers there."""

    rows: list[dict[str, Any]]
    notes: list[str]

    def as_text(self) -> str:
        """The table with thousands separators, and the notes, as wide as the terminal but at most WIDTH."""
        header = list(dict.fromkeys(key for row in self.rows for key in row))
        body = [[_cell(row.get(key)) for key in header] for row in self.rows]
        are_text = [any(isinstance(row.get(key), str) for row in self.rows) for key in header]
        align = ["left" if is_text else "right" for is_text in are_text]
        table = tabulate(body, headers=header, tablefmt="simple", disable_numparse=True, colalign=align)
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        notes = [textwrap.fill(note, width, break_on_hyphens=False) for note in self.notes]
        return "\n".join([table, "", *notes]).rstrip()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Seconds):
        return duration(value)
    if isinstance(value, Bytes):
        return size(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)
