"""The learning curve of every run, drawn in a page, with its values on hover."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from albert_lab.analysis.analysis import Analysis
from albert_lab.figures.charts import ALONG, AXES, along, floors
from albert_lab.figures.data import FigureData, curve_of, figure_data
from albert_lab.figures.drawing import COLOURS, LINES, has_room
from albert_lab.report.page.html import PageSection, render
from albert_lab.score import CHANCE

# The inside of a panel, in units of its drawing.
LEFT, TOP, RIGHT, BOTTOM = 44, 8, 352, 190


@dataclass(frozen=True)
class RunCurve:
    """A run with the label of its row, the CSS classes of its row, and its number in the page."""

    name: str
    seed: int
    row: str
    style: str
    number: int


@dataclass(frozen=True)
class Curve:
    """A run in a panel: the points of its line, and their texts with score and place."""

    run: RunCurve
    points: str
    values: str
    places: str


@dataclass(frozen=True)
class Tick:
    """A place on an axis, in units of the drawing, and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Panel:
    """A score during training.

    Attributes:
        constant: the height of the score of a constant answer; None if it is unknown or far from the curves.
        beyond: that score as text if it is far from the curves.
    """

    score: str
    x: Sequence[Tick]
    y: Sequence[Tick]
    constant: float | None
    beyond: str
    curves: Sequence[Curve]


def sections(analysis: Analysis) -> list[PageSection]:
    study = figure_data(analysis)
    runs = _runs(study)
    panels = [
        _panel(study, runs, column)
        for column in study.experiment.columns
        if column in AXES and any(curve_of(run, "step", column) for run in study.runs)
    ]
    drawn = {curve.run.name for panel in panels for curve in panel.curves}
    if not drawn:
        return []
    rows: dict[str, list[RunCurve]] = {}
    for run in runs:
        if run.name in drawn:
            rows.setdefault(run.row, []).append(run)
    body = render(
        "curves.html.j2",
        rows=rows,
        panels=panels,
        without=[run.name for run in runs if run.name not in drawn],
        along=ALONG[along(study)],
        unit="steps" if along(study) == "step" else "seconds",
        frame={"left": LEFT, "top": TOP, "right": RIGHT, "bottom": BOTTOM},
    )
    return [PageSection("Learning curves of every run", body, after="Figures")]


def _runs(study: FigureData) -> list[RunCurve]:
    """Every finished run once, in the order of the table; a run of several rows is in the first."""
    by_name: dict[str, RunCurve] = {}
    for (colour, pattern), row in zip(study.looks, study.rows, strict=True):
        style = f"colour-{colour % len(COLOURS)} dash-{pattern % len(LINES)}"
        for run in row.runs:
            if run.name not in by_name:
                by_name[run.name] = RunCurve(run.name, run.seed, study.name(row), style, len(by_name))
    return list(by_name.values())


def _panel(study: FigureData, runs: Sequence[RunCurve], column: str) -> Panel:
    of_name = {run.name: run for run in study.runs}
    points = {run.number: curve_of(of_name[run.name], along(study), column) for run in runs}
    xs, ys = ([point[side] for of_run in points.values() for point in of_run] for side in (0, 1))
    if not xs:
        return Panel(AXES[column], [], [], None, "", [])
    floor, beyond = floors(study.runs, column).get(CHANCE), ""
    low, high = min(ys), max(ys)
    if floor is not None and not has_room(low, high, min(low, floor), max(high, floor)):
        floor, beyond = None, f"{floor:.1f}"
    ys += [] if floor is None else [floor]
    x_ticks, y_ticks = _ticks(xs), _ticks(ys)

    def place_x(value: float) -> float:
        return _between(value, x_ticks, LEFT, RIGHT)

    def place_y(value: float) -> float:
        return _between(value, y_ticks, BOTTOM, TOP)

    curves = [
        Curve(
            run,
            " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in points[run.number]),
            " ".join(f"{y:.1f}" for _, y in points[run.number]),
            " ".join(f"{x:,.0f}" for x, _ in points[run.number]),
        )
        for run in runs
        if points[run.number]
    ]
    x, y = (
        [Tick(round(place(value), 1), f"{value:,.12g}") for value in ticks]
        for place, ticks in ((place_x, x_ticks), (place_y, y_ticks))
    )
    return Panel(AXES[column], x, y, None if floor is None else round(place_y(floor), 1), beyond, curves)


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers from below the smallest value to above the largest."""
    low, high = min(values), max(values)
    return list(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(low, high if high > low else low + 1))


def _between(value: float, ticks: Sequence[float], start: float, end: float) -> float:
    return start + (end - start) * (value - ticks[0]) / (ticks[-1] - ticks[0])
