"""The style and the files of figures: for print, and for colour-blind readers."""

import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from albert_lab.messages import printable
from albert_lab.storage import write_atomically
from albert_lab.studies.experiment import PaperFigure

# The palette of Okabe and Ito (2008), which colour-blind readers can distinguish, without yellow,
# which is hard to see on paper. Then three of the muted colours of Paul Tol (2021).
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#000000",
    "#882255",
    "#999933",
    "#332288",
)
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (7, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
FLOOR = "#555555"
SPREAD = "± one standard deviation over seeds"
MOST_MISSING = 20  # rows in a legend
PANEL_INCHES = (3.3, 2.5)
MOST_INCHES = 10.0
LEGEND_ROW_INCHES, TITLE_INCHES = 0.18, 0.3
CHARACTERS_PER_INCH = 14
COLOURS_OF_PNG = 64
DESCRIPTION = "Description"  # a keyword that the PNG specification names
RC = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "figure.titlesize": 10,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "savefig.dpi": 150,
    "text.parse_math": False,  # a label with two dollars is no formula
}
Look = tuple[int, int]  # the index of a colour, and that of a line and marker


def sheet(columns: int) -> tuple[Figure, list[Axes]]:
    """An empty figure and its panels, beside each other."""
    width, height = PANEL_INCHES
    figure = Figure(figsize=(min(width * columns, MOST_INCHES), height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def looks(rows: Mapping[str, Sequence[str]]) -> dict[str, Look]:
    """The look of each row by its labels: of two axes, colour shows the one with more labels, lines
    the other.
    """
    if {len(labels) for labels in rows.values()} != {2}:
        return {row: (place, place) for place, row in enumerate(rows)}
    axes = [list(dict.fromkeys(labels[axis] for labels in rows.values())) for axis in (0, 1)]
    first, second = sorted((0, 1), key=lambda axis: -len(axes[axis]))
    return {
        row: (axes[first].index(own[first]), axes[second].index(own[second]))
        for row, own in rows.items()
    }


def style(look: Look, *, paper: bool = False) -> dict[str, Any]:
    """The style of a row, the same in every panel; the paper's markers are hollow."""
    colour, pattern = look
    drawn: dict[str, Any] = {"color": COLOURS[colour % len(COLOURS)]}
    drawn |= {"linestyle": LINES[pattern % len(LINES)], "marker": MARKERS[pattern % len(MARKERS)]}
    return drawn | ({"markerfacecolor": "none"} if paper else {})


def literal(text: str) -> str:
    """Text that matplotlib shows as it is, on one line; legends leave out labels that begin with an
    underscore.
    """
    return re.sub("^_", " _", printable(text))


def draw_line(panel: Axes, points: Any, label: str, look: Look) -> None:
    """Draw means with a band of one standard deviation over seeds on either side.

    Args:
        points: a table with x, mean and sd (NaN for a single seed).
    """
    points = points.sort_values("x")
    panel.plot(points["x"], points["mean"], label=literal(label), **style(look))
    low, high = points["mean"] - points["sd"], points["mean"] + points["sd"]
    band: dict[str, Any] = {"color": style(look)["color"], "alpha": 0.15, "linewidth": 0}
    spread = SPREAD if points["sd"].notna().any() else None
    panel.fill_between(points["x"], low, high, label=spread, **band)


def draw_paper(panel: Axes, paper: PaperFigure, metric: str, looks_of: Mapping[str, Look]) -> None:
    """Draw the paper's curves of a metric as far as they were read off: points, and a hatched range
    for the rest.
    """
    for place, curve in enumerate(curve for curve in paper.curves if curve.panel == metric):
        other = len(looks_of) + place  # a row that we have not, which has a colour of its own
        look = style(looks_of.get(curve.row, (other, other)), paper=True)
        if curve.between:
            look["linestyle"] = "none"
        xs, ys = zip(*curve.points, strict=True)
        panel.plot(xs, ys, label=literal(curve.row), **look)
        if curve.between:
            hatch = {
                "facecolor": "none",
                "edgecolor": look["color"],
                "hatch": "///",
                "linewidth": 0.5,
                "alpha": 0.6,
            }
            between = [min(xs) + 1, max(xs) - 1]
            panel.fill_between(
                between,
                *curve.between,
                label=literal(f"paper, {curve.row}: read off as a range"),
                **hatch,
            )
    panel.set(title=f"paper, {paper.figure} (read off the plot)", xlabel=paper.x)


def draw_floor(panel: Axes, height: float, label: str, dashes: str) -> None:
    """Draw a floor; one for which the lines would have to shrink too far is written at the edge of
    the panel.
    """
    low, high = panel.dataLim.intervaly
    if high - low >= (max(high, height) - min(low, height)) / 2:
        panel.axhline(height, color=FLOOR, linestyle=dashes, linewidth=1, label=label)
        return
    is_below = height < low
    lines = sum(isinstance(text.get_gid(), str) for text in panel.texts)
    place = (
        {"va": "bottom", "y": 0.02 + 0.07 * lines}
        if is_below
        else {"va": "top", "y": 0.98 - 0.07 * lines}
    )
    text = f"{label}: {height:.1f} {'↓' if is_below else '↑'}"
    panel.text(
        0.99,
        s=text,
        fontsize=6,
        color=FLOOR,
        ha="right",
        transform=panel.transAxes,
        gid="floor",
        **place,
    )


def finish(
    figure: Figure, title: str, panels: Sequence[Axes], missing: Sequence[str] = ()
) -> Figure:
    """Put the message above a figure, and below it one legend of its panels, with the rows that are
    missing.
    """
    # headings of tasks and measures, names of axes, quotations
    for written in figure.findobj(Text):
        written.set_text(literal(written.get_text()))
    by_label: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            by_label.setdefault(label, handle)
    words = [f"missing: {words}" for words in missing[:MOST_MISSING]]
    words += [f"missing: {len(missing) - MOST_MISSING} more"] if len(missing) > MOST_MISSING else []
    by_label |= {literal(line): Line2D([], [], linestyle="none") for line in words}
    width, height = figure.get_size_inches()
    columns = max(
        1,
        min(
            len(by_label),
            int(width * CHARACTERS_PER_INCH / (max(map(len, by_label), default=0) + 8)),
        ),
    )
    rows = -(-len(by_label) // columns)
    unbroken = literal(title).replace(" = ", "\u00a0=\u00a0")
    text = textwrap.fill(unbroken, int(width * CHARACTERS_PER_INCH * 0.85))
    figure.set_size_inches(
        width, height + LEGEND_ROW_INCHES * rows + TITLE_INCHES * (text.count("\n") + 1)
    )
    figure.suptitle(text, fontweight="bold")
    if by_label:
        figure.legend(
            list(by_label.values()), list(by_label), loc="outside lower center", ncols=columns
        )
    return figure


def write(draw: Callable[[], Figure | None], file: Path, *others: Path) -> Figure | None:
    """Write a figure into a PNG file of few colours, and others by their ending; None if there is
    none.

    The PNG file keeps the label of the figure, which may be the data that it shows, as its
    description.
    """
    with matplotlib.style.context(["default", RC]):  # regardless of the user's settings
        figure = draw()
        if figure is None:
            return None
        # the layout that is saved starts from the ticks of a first one
        figure.draw_without_rendering()
        for path in (file, *others):
            content = io.BytesIO()
            figure.savefig(content, format=path.suffix[1:])
            label = str(figure.get_label())
            write_atomically(
                path, _few_colours(content, label) if path.suffix == ".png" else content.getvalue()
            )
    return figure


def _few_colours(content: io.BytesIO, label: str) -> bytes:
    smaller, description = io.BytesIO(), PngInfo()
    if label:
        description.add_itxt(DESCRIPTION, label)
    picture = Image.open(content).convert("RGB").quantize(COLOURS_OF_PNG)
    picture.save(smaller, "PNG", optimize=True, pnginfo=description)
    return smaller.getvalue()
