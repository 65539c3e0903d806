"""The picture of all claims: a line a claim, by table, with its verdict and number by loss and by
tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from albert_lab.figures import drawing

LINE_INCHES = 0.21
WIDTH_INCHES = 7.6
COLUMNS = {"by loss, or number": 0.35, "by tasks": 0.69}  # where each begins, of the width
SHADE = "#F2F2F2"
LOOKS = {  # the colour and the marker of each word
    "yes": (drawing.COLOURS[2], "o"),
    "NO": (drawing.COLOURS[1], "X"),
    "undecided": (drawing.COLOURS[0], "D"),
    "cannot tell": ("#777777", "s"),
    "not run": ("#BBBBBB", "."),
}
NOTES = (
    "A difference above 0 is as the claim says. Of pairs of segments, 45 to 55 % is chance.",
    "Undecided beside an interval without 0: p is corrected for the number of claims.",
    "Sizes in claims are the paper's (E = 768 is E = H); of a trained encoder, its own.",
    "A row is at the largest scale that can tell it: neighbours may be other models and texts.",
)


@dataclass(frozen=True)
class Mark:
    """A verdict in a column: its word and the number."""

    word: str
    number: str


@dataclass(frozen=True)
class ClaimRow:
    """A claim in words, the table that it is of, and its verdict in each column that asks it."""

    group: str
    claim: str
    marks: Mapping[str, Mark]


def claims(rows: Sequence[ClaimRow], title: str) -> Figure:
    """A line a claim, grouped by table."""
    groups = list(dict.fromkeys(row.group for row in rows))
    num_lines = len(rows) + len(groups) + len(NOTES)
    height = LINE_INCHES * (num_lines + 2)
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    panel = figure.add_subplot()
    panel.set_axis_off()
    panel.set(xlim=(0, 1), ylim=(num_lines, -1))
    for column, left in COLUMNS.items():
        panel.text(left, -0.6, column, fontweight="bold", va="center")
    y = 0
    for group in groups:
        panel.axhspan(y - 0.5, y + 0.5, color=SHADE, linewidth=0)
        panel.text(0, y, group, fontweight="bold", va="center")
        y += 1
        for row in (row for row in rows if row.group == group):
            panel.text(0.01, y, row.claim, va="center", fontsize=7.5)
            for column, mark in row.marks.items():
                _draw(panel, COLUMNS[column], y, mark)
            y += 1
    for word, (colour, marker) in LOOKS.items():
        panel.plot([], [], linestyle="none", marker=marker, color=colour, label=word)
    for place, note in enumerate(NOTES, start=y):
        panel.text(0, place, note, va="center", fontsize=7)
    figure.set_label(as_text(rows, title))
    return drawing.finish(figure, title, [panel])


def as_text(rows: Sequence[ClaimRow], title: str) -> str:
    """All that the picture shows."""
    return "\n".join([title, *map(str, rows)])


def _draw(panel: Axes, left: float, y: float, mark: Mark) -> None:
    colour, marker = LOOKS[mark.word]
    panel.plot(left + 0.005, y, color=colour, marker=marker, markersize=5)
    text = f"{mark.word}  {mark.number}".strip()
    panel.text(left + 0.018, y, text, va="center", fontsize=7, color=colour)
