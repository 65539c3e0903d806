"""The style and the files of figures: for print, and for colour-blind readers."""

import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from albert_lab.score import CHANCE, Floor
from albert_lab.storage import write_atomically
from albert_lab.studies.experiment import PaperCurve
from albert_lab.studies.table import Spread

# The palette of Okabe and Ito (2008), which colour-blind readers can distinguish, without yellow, which is hard to see
# on paper. Then three of the muted colours of Paul Tol (2021).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#882255", "#999933", "#332288")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (7, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
FLOOR_COLOUR = "#555555"
FURTHER_FLOOR = (0, (6, 2))  # dashes; that of constant answers is dotted
LEAST_OF_PANEL = 0.5  # for its lines, next to the floors
COLUMN_INCHES, ROW_INCHES = 3.3, 2.5
MOST_INCHES = 10.8  # in width
LEGEND_ROW_INCHES = 0.17
CHARACTERS_PER_INCH = 14
RC = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "savefig.dpi": 200,
}
READ_OFF = "read off the plot"
Look = tuple[int, int]  # the index of a colour, and that of a line and marker


@dataclass(frozen=True)
class Line:
    """Points of a line: means over seeds and their standard deviations (None for single seeds); of is n as text."""

    label: str
    x: Sequence[float]
    mean: Sequence[float]
    sd: Sequence[float] | None
    of: str

    @classmethod
    def of_spreads(cls, label: str, x: Sequence[float], spreads: Sequence[Spread]) -> "Line":
        has_spread = any(spread.sd is not None for spread in spreads)
        sd = [spread.sd or 0.0 for spread in spreads] if has_spread else None
        return cls(label, x, [spread.mean for spread in spreads], sd, counted([spread.n for spread in spreads]))


def counted(counts: Sequence[int], unit: str = "seed") -> str:
    """The number of seeds of points as text: `n = 1 seed` or `n = 2 to 3 seeds`."""
    low, high = min(counts), max(counts)
    return f"n = {low if low == high else f'{low} to {high}'} {unit}{'' if high == 1 else 's'}"


def sheet(rows: int, columns: int) -> tuple[Figure, list[list[Axes]]]:
    """An empty figure and its panels [rows][columns]."""
    width = min(COLUMN_INCHES * columns, MOST_INCHES)
    figure = Figure(figsize=(width, ROW_INCHES * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).tolist()


def style(look: int | Look, *, paper: bool = False) -> dict[str, Any]:
    """The style of a row, the same in every panel; the paper's markers are hollow.

    Args:
        look: the index of its colour, and that of its line and marker; or one index for both.
    """
    colour, pattern = (look, look) if isinstance(look, int) else look
    drawn: dict[str, Any] = {"color": COLOURS[colour % len(COLOURS)]}
    drawn |= {"linestyle": LINES[pattern % len(LINES)], "marker": MARKERS[pattern % len(MARKERS)]}
    return drawn | {"markerfacecolor": "none"} if paper else drawn


def draw_line(
    panel: Axes, line: Line, look_of: int | Look, *, paper: bool = False, marker: bool = True, band: bool = True
) -> None:
    """Draw a row's means, with a band of one standard deviation over seeds on either side."""
    label = line.label if paper or not line.of else f"{line.label} ({line.of})"
    look = style(look_of, paper=paper)
    look["marker"] = look["marker"] if marker else ""
    panel.plot(line.x, line.mean, label=label, **look)
    if band and line.sd is not None:
        low = [mean - sd for mean, sd in zip(line.mean, line.sd, strict=True)]
        high = [mean + sd for mean, sd in zip(line.mean, line.sd, strict=True)]
        # Edges in the pattern of the line distinguish overlapping bands, also on paper.
        edge = {"edgecolor": look["color"], "linestyle": look["linestyle"], "linewidth": 0.6}
        panel.fill_between(line.x, low, high, facecolor=to_rgba(look["color"], 0.15), **edge)


def draw_marker(panel: Axes, x: float, y: float, index: int, kind: int, *, paper: bool) -> None:
    look = style(index, paper=paper)
    look |= {"marker": MARKERS[kind % len(MARKERS)], "linestyle": "none"}
    panel.plot([x], [y], **look)


def marker_legend(figure: Figure, kinds: Sequence[str]) -> None:
    if kinds:
        looks = [
            {"color": "#555555", "linestyle": "none", "marker": style(kind)["marker"]} for kind in range(len(kinds))
        ]
        _legend(figure, [Line2D([], [], **look) for look in looks], kinds)


def draw_rows(panel: Axes, series: Mapping[str, Sequence[tuple[float, float | None]]]) -> None:
    """Draw values (mean and standard deviation) of rows from top to bottom; a second series is the paper's."""
    for index, (label, values) in enumerate(series.items()):
        look = style(index, paper=index > 0)
        look |= {"linestyle": "none", "markersize": 4.5 if index == 0 else 7.5}
        for place, (mean, sd) in enumerate(values):
            panel.errorbar(mean, place, xerr=sd, capsize=3, label=label if place == 0 else None, **look)
        panel.set_ylim(len(values) - 0.5, -0.5)
        panel.set_yticks(range(len(values)), [""] * len(values))
    panel.set_xlim(0, panel.get_xlim()[1])
    panel.xaxis.set_major_formatter("{x:,g}")


def name_rows(figure: Figure, panel: Axes, names: Sequence[str]) -> None:
    panel.set_yticks(range(len(names)), names)
    width, _ = figure.get_size_inches()
    figure.set_size_inches(width + max(map(len, names)) / CHARACTERS_PER_INCH, 0.9 + 0.25 * len(names))


def floor_label(name: Floor) -> str:
    return "a constant answer" if name == CHANCE else name


def draw_floors(panel: Axes, heights: Mapping[Floor, float], means: Collection[Floor] = ()) -> None:
    """Draw the floors of a score below or above its lines, which are there already: chance dotted and others dashed.

    A floor for which the lines would have to shrink too far is written at the edge of the panel.

    Args:
        means: floors that differ from row to row.
    """
    low, high = panel.dataLim.intervaly
    bottom, top = low, high
    edges = {"bottom": 0.02, "top": 0.98}
    for name, height in heights.items():
        label = floor_label(name) + (" (mean of the rows)" if name in means else "")
        if has_room(low, high, min(bottom, height), max(top, height)):
            bottom, top = min(bottom, height), max(top, height)
            pattern = (0, (1, 1)) if name == CHANCE else FURTHER_FLOOR
            panel.axhline(height, color=FLOOR_COLOUR, linestyle=pattern, linewidth=1, label=label)
            continue
        edge, arrow, step = ("bottom", "↓", 0.07) if height < low else ("top", "↑", -0.07)
        text = {"fontsize": 6, "color": FLOOR_COLOUR, "ha": "right", "va": edge, "transform": panel.transAxes}
        panel.text(0.99, edges[edge], f"{label}: {height:.1f} % {arrow}", **text)
        edges[edge] += step


def has_room(low: float, high: float, bottom: float, top: float) -> bool:
    """Whether lines from low to high keep enough of a panel from bottom to top."""
    return high - low >= LEAST_OF_PANEL * (top - bottom)


def draw_floor_of_places(panel: Axes, points: Sequence[tuple[float, float]], label: str, look_of: int) -> None:
    """Draw a floor that differs from place to place, in the colour of its score; one line of the legend names all."""
    dashed: dict[str, Any] = {"linestyle": FURTHER_FLOOR, "linewidth": 1}
    panel.plot(*zip(*points, strict=True), color=style(look_of)["color"], **dashed)
    if label not in panel.get_legend_handles_labels()[1]:
        panel.plot([], [], color=FLOOR_COLOUR, label=label, **dashed)


def draw_parting(panel: Axes, x: float) -> None:
    panel.axvline(x, color="#555555", linestyle=(0, (6, 2, 1, 2)), linewidth=1, label="one curve up to here")


def plain_ticks(panel: Axes, places: Sequence[float] | None = None) -> None:
    """Label a logarithmic horizontal axis, whose lines are drawn, with plain numbers, at the given places if any."""
    low, high = panel.get_xlim()
    # In a small range LogLocator takes numbers at equal distances, which stand closer and closer together.
    wide = LogLocator(subs=(1, 2, 5)) if high >= 5 * low else MaxNLocator(nbins=4)
    panel.xaxis.set_major_locator(FixedLocator(places) if places else wide)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_locator(NullLocator())


def draw_paper_curve(panel: Axes, curve: PaperCurve, index: int) -> None:
    """Draw a curve of the paper as far as it could be read: its points, and a hatched range for the rest."""
    xs, ys = zip(*curve.points, strict=True)
    look = style(index, paper=True)
    if curve.between:  # a line joins the points only if the whole curve was read
        look["linestyle"] = "none"
    panel.plot(xs, ys, label=curve.row, **look)
    if curve.between:
        inside = [min(xs) + 1, max(xs) - 1]
        hatch = {"facecolor": "none", "edgecolor": to_rgba(look["color"], 0.6), "hatch": "///", "linewidth": 0.5}
        panel.fill_between(inside, *curve.between, label=f"{curve.row}: the rest lies here", **hatch)


def whole_numbers(panel: Axes) -> None:
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def legend_below(figure: Figure, panels: Sequence[Axes]) -> None:
    by_label = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            by_label.setdefault(label, handle)
    _legend(figure, list(by_label.values()), list(by_label))


def _legend(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    width, height = figure.get_size_inches()
    columns = max(1, min(len(labels), int(width * CHARACTERS_PER_INCH / (max(map(len, labels)) + 8))))
    figure.set_size_inches(width, height + LEGEND_ROW_INCHES * math.ceil(len(labels) / columns))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def legends_under(figure: Figure, panels: Sequence[Axes]) -> None:
    """A legend under each panel, for panels with different rows."""
    rows = max(len(panel.get_legend_handles_labels()[1]) for panel in panels)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + LEGEND_ROW_INCHES * rows)
    for panel in panels:
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24))


def write(draw: Callable[[], Figure | None], folder: Path, name: str) -> list[Path]:
    """The PNG and the SVG of a function's figure; empty if it draws none."""
    with matplotlib.style.context(["default", RC]):  # regardless of the user's settings
        figure = draw()
        if figure is None:
            return []
        figure.draw_without_rendering()  # the layout that is saved starts from the ticks of a first one
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
        for file in files:
            content = io.BytesIO()
            figure.savefig(content, format=file.suffix[1:])
            write_atomically(file, content.getvalue())
    return files
