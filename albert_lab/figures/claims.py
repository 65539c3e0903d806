"""The picture of all claims: a line a claim, by table, with its verdict and number by loss and by
tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from albert_lab.figures import drawing

LINE_INCHES, WIDTH_INCHES = 0.21, 10.0
CLAIM_SHARE = 0.36  # of the width: the claims; the columns share the rest
SHADE = "#F2F2F2"


@dataclass(frozen=True)
class Mark:
    """A verdict in a column: its word, the number, and whether something is told: it is decided, or
    could have been.
    """

    word: str
    number: str
    tells: bool


@dataclass(frozen=True)
class ClaimRow:
    """A claim in words, the table that it is of, and its verdict in each column that asks it."""

    group: str
    claim: str
    marks: Mapping[str, Mark]


def claims(
    rows: Sequence[ClaimRow],
    columns: Sequence[str],
    looks: Mapping[str, tuple[str, str]],
    title: str,
) -> Figure:
    """A line a claim, grouped by table; a mark is filled where it tells something.

    Args:
        columns: the names of the columns, in their order.
        looks: the colour and the marker of each word.
    """
    groups = list(dict.fromkeys(row.group for row in rows))
    height = LINE_INCHES * (len(rows) + len(groups) + 2)
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    panel = figure.add_subplot()
    panel.set_axis_off()
    panel.set(xlim=(0, 1), ylim=(len(rows) + len(groups), -1))
    width = (1 - CLAIM_SHARE) / len(columns)
    lefts = {column: CLAIM_SHARE + place * width for place, column in enumerate(columns)}
    for column, left in lefts.items():
        panel.text(left, -0.6, column, fontweight="bold", va="center")
    y = 0
    for group in groups:
        panel.axhspan(y - 0.5, y + 0.5, color=SHADE, linewidth=0)
        panel.text(0, y, group, fontweight="bold", va="center")
        y += 1
        for row in (row for row in rows if row.group == group):
            panel.text(0.01, y, row.claim, va="center", fontsize=7.5)
            for column, mark in row.marks.items():
                _draw(panel, lefts[column], y, mark, looks[mark.word])
            y += 1
    for word, (colour, marker) in looks.items():
        panel.plot([], [], linestyle="none", marker=marker, color=colour, label=word)
    hollow = Line2D(
        [], [], linestyle="none", marker="o", markerfacecolor="none", color=drawing.FLOOR
    )
    hollow.set_label("hollow: nothing is told at this scale")
    panel.add_line(hollow)
    corrected = Line2D([], [], linestyle="none")
    corrected.set_label(
        "undecided beside an interval without 0: p is corrected for the number of claims"
    )
    panel.add_line(corrected)
    figure.set_label(as_text(rows, title))
    return drawing.finish(figure, title, [panel])


def as_text(rows: Sequence[ClaimRow], title: str) -> str:
    """What the picture shows: its title, and a line a claim with its verdicts and numbers."""
    lines = [title]
    for row in rows:
        marks = [
            f"{column}: {mark.word} {mark.number} {mark.tells}"
            for column, mark in row.marks.items()
        ]
        lines.append(" | ".join([row.group, row.claim, *marks]))
    return "\n".join(lines)


def _draw(panel: Axes, left: float, y: float, mark: Mark, look: tuple[str, str]) -> None:
    colour, marker = look
    inside = colour if mark.tells else "none"
    panel.plot(left + 0.005, y, color=colour, marker=marker, markersize=5, markerfacecolor=inside)
    panel.text(
        left + 0.018,
        y,
        f"{mark.word}  {mark.number}".strip(),
        va="center",
        fontsize=7,
        color=colour,
    )
