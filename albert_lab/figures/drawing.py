"""The style and the files of figures: for print, and for colour-blind readers."""

import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
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
LEGEND_ROW_INCHES = 0.18
TITLE_INCHES = 0.3
CHARACTERS_PER_INCH = 14
COLOURS_OF_PNG = 64
PNG_AND_SVG = ("png", "svg")
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
    """The look of each row by its labels: of two axes, lines show the first, colours the second."""
    if {len(labels) for labels in rows.values()} != {2}:
        return {row: (place, place) for place, row in enumerate(rows)}
    lines, colours = (list(dict.fromkeys(labels)) for labels in zip(*rows.values(), strict=True))
    return {row: (colours.index(own[1]), lines.index(own[0])) for row, own in rows.items()}


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
    low = points["mean"] - points["sd"]
    high = points["mean"] + points["sd"]
    band: dict[str, Any] = {"color": style(look)["color"], "alpha": 0.15, "linewidth": 0}
    spread = SPREAD if points["sd"].notna().any() else None
    panel.fill_between(points["x"], low, high, label=spread, **band)


def draw_points(panel: Axes, points: Any, label: str, look: Look) -> None:
    """Draw means, joined, with bars of one standard deviation over seeds; points as above."""
    points = points.sort_values("x")
    bars = panel.errorbar(points["x"], points["mean"], points["sd"], capsize=2, **style(look))
    bars.set_label(literal(label))
    if points["sd"].notna().any():
        panel.errorbar([], [], [], color=FLOOR, capsize=2, label=SPREAD)


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
            panel.fill_between(
                [min(xs) + 1, max(xs) - 1],
                *curve.between,
                label=literal(f"paper, {curve.row}: read off as a range"),
                facecolor="none",
                edgecolor=look["color"],
                hatch="///",
                linewidth=0.5,
                alpha=0.6,
            )
    panel.set(title=f"paper, {paper.figure} (read off the plot)", xlabel=paper.x)


def draw_floor(panel: Axes, height: float, label: str, dashes: str) -> None:
    """Draw a floor, unless the lines would have to shrink to less than half for it; none of NaN."""
    low, high = panel.dataLim.intervaly
    if high - low >= np.ptp([low, high, height]) / 2:
        panel.axhline(height, color=FLOOR, linestyle=dashes, linewidth=1, label=label)


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
    if len(missing) > MOST_MISSING:
        words.append(f"missing: {len(missing) - MOST_MISSING} more")
    by_label |= {literal(line): Line2D([], [], linestyle="none") for line in words}
    width, height = figure.get_size_inches()
    characters = int(width * CHARACTERS_PER_INCH)
    longest = max(map(len, by_label), default=0) + 8
    columns = max(1, min(len(by_label), characters // longest))
    rows = -(-len(by_label) // columns)
    lines = textwrap.wrap(literal(title), int(0.85 * characters))
    height += LEGEND_ROW_INCHES * rows + TITLE_INCHES * max(1, len(lines))
    figure.set_size_inches(width, height)
    figure.suptitle("\n".join(lines), fontweight="bold")
    if by_label:
        figure.legend(
            list(by_label.values()), list(by_label), loc="outside lower center", ncols=columns
        )
    return figure


def write(
    draw: Callable[[], Figure | None], folder: Path, name: str, kinds: Sequence[str] = PNG_AND_SVG
) -> list[Path]:
    """Write a figure into files of these kinds, PNG of few colours; return the files, none if draw
    returns no figure.

    The PNG file keeps the label of the figure, which may be the data that it shows, as its
    description.
    """
    files = []
    with matplotlib.style.context(["default", RC]):  # regardless of the user's settings
        figure = draw()
        if figure is None:
            return []
        # the layout that is saved starts from the ticks of a first one
        figure.draw_without_rendering()
        for kind in kinds:
            content = io.BytesIO()
            figure.savefig(content, format=kind)
            if kind == "png":
                content = _few_colours(content, str(figure.get_label()))
            files.append(folder / f"{name}.{kind}")
            write_atomically(files[-1], content.getvalue())
    return files


def _few_colours(png: io.BytesIO, description: str) -> io.BytesIO:
    """A smaller PNG of a picture, with a description unless that is empty."""
    smaller = io.BytesIO()
    texts = PngInfo()
    if description:
        texts.add_itxt(DESCRIPTION, description)
    picture = Image.open(png).convert("RGB").quantize(COLOURS_OF_PNG)
    picture.save(smaller, "PNG", optimize=True, pnginfo=texts)
    return smaller
