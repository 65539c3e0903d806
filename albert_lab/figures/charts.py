"""The content of each figure of a study: a function from its analysis and title to the figure; None
without data.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.frame import HERE, NOTHING_LEARNT, PAPER, printed
from albert_lab.figures import drawing
from albert_lab.figures.drawing import Look
from albert_lab.runs.reported import AVERAGE
from albert_lab.studies.claims import axis_name, number_in
from albert_lab.studies.experiment import PaperFigure

MOST_PANELS = 3
PARAMETERS = "parameters (millions)"
Numbers = Sequence[float | None]
LAYERS = {"l2_distance": "L2 distance", "degrees": "angle (degrees)"}


def learning_curves(analysis: Analysis, title: str) -> Figure | None:
    """Held-out scores in percent during training, a panel a score, with its floors and the paper's
    curves.
    """
    curves: Any = analysis.frame.curves
    shown = [name for name in analysis.drawn if name in set(curves["metric"])][:MOST_PANELS]
    if not shown:
        return None
    wide = curves.pivot_table(
        index=["row", "seed", "step"], columns="metric", values="value", sort=False
    ).reset_index()
    x = "step"
    x_label = "optimizer steps"
    # Runs of as much time have different steps.
    if any(record.config.budget.unit == "seconds" for record in analysis.records):
        x = "training_seconds"
        x_label = "training time (seconds)"
    paper = analysis.experiment.paper_figure
    has_paper = paper is not None and any(curve.panel == shown[0] for curve in paper.curves)
    figure, panels = drawing.sheet(len(shown) + has_paper)
    having = set(wide["row"])
    looks = _looks(analysis)
    for panel, metric in zip(panels, shown, strict=False):
        for row in (row for row in looks if row in having):
            own = wide[wide["row"] == row].dropna(subset=[metric])
            drawing.draw_line(panel, _over_seeds(own, x, metric), row, looks[row])
        _draw_floors(panel, analysis, metric)
        panel.set(xlabel=x_label, ylabel=f"{analysis.heading(metric)} on held-out text (%)")
    if has_paper and paper:
        of_labels = {"".join(labels): looks[row] for row, labels in _labels(analysis).items()}
        drawing.draw_paper(panels[-1], paper, shown[0], of_labels)
    return drawing.finish(figure, title, panels, _missing(analysis, having))


def _over_seeds(own: Any, x: str, metric: str) -> Any:
    """Mean and standard deviation of a row over its seeds, evaluation by evaluation; columns x,
    mean and sd.
    """
    place = own.groupby("seed").cumcount()
    table = own.groupby(place).agg(
        x=(x, "mean"), mean=(metric, "mean"), sd=(metric, "std"), seeds=("seed", "size")
    )
    return table[table["seeds"] == table["seeds"].max()]


def scores_by_setting(analysis: Analysis, title: str) -> Figure | None:
    """The main scores against a numeric axis, a line for the labels of the others; None without
    such an axis, or without scores in percent.
    """
    axis = _numeric_axis(analysis)
    if axis is None:
        return None
    name = axis_name(axis).replace("_", " ")
    in_paper = [number_in(analysis.frame.cells[axis][row]) for row in analysis.rows]
    return _draw_against(analysis, title, _numbers(analysis, axis), in_paper, name)


def sharing_tradeoff(analysis: Analysis, title: str) -> Figure | None:
    """The main scores against parameters, so that a line joins the sizes of a numeric axis."""
    means = analysis.summary["mean"].to_dict()
    here = [means.get(("parameters", row), np.nan) / 1e6 for row in analysis.rows]
    in_paper = [number / 1e6 for number in _papers(analysis, "parameters")]
    return _draw_against(analysis, title, here, in_paper, PARAMETERS)


def _draw_against(
    analysis: Analysis, title: str, here: Numbers, in_paper: Numbers, x_label: str
) -> Figure | None:
    """The main scores of the rows against a number of each, and the paper's average beside.

    Args:
        here, in_paper: the numbers of the rows, ours and the paper's; None or NaN without one.
    """
    shown = analysis.drawn[:MOST_PANELS]
    if not shown:
        return None
    numeric = _numeric_axis(analysis)
    others = [axis for axis in analysis.study.axes if axis != numeric]
    rows: Any = analysis.frame.rows.set_index("row")
    table: Any = pd.DataFrame({"x": here, "in_paper": in_paper}, index=rows.index, dtype=float)
    table["line"] = rows[others].agg(", ".join, axis=1) if others else ""
    table["average"] = _papers(analysis, AVERAGE)
    table = table.dropna(subset=["x"])
    has_paper = table["average"].notna().any()
    figure, panels = drawing.sheet(len(shown) + has_paper)
    for panel, metric in zip(panels, shown, strict=False):
        measured = table.join(analysis.summary.loc[metric, ["mean", "sd"]], how="inner")
        for place, (name, line) in enumerate(measured.groupby("line", sort=False)):
            drawing.draw_points(panel, line, str(name), (place, place))
        _draw_floors(panel, analysis, metric)
        panel.set(ylabel=f"{analysis.heading(metric)} (%)")
        _scale(panel, table["x"], x_label)
    if has_paper:
        for place, (_, line) in enumerate(table.groupby("line", sort=False)):
            look = drawing.style((place, place), paper=True)
            panels[-1].plot(line["in_paper"], line["average"], **look)
        panels[-1].set(title="paper, average of five tasks (%)")
        _scale(panels[-1], table["in_paper"], x_label)
    having = {row for metric, row in analysis.summary.index if metric in shown}
    return drawing.finish(figure, title, panels, _missing(analysis, having))


def _numeric_axis(analysis: Analysis) -> str | None:
    """The first axis along which rows have several numbers; None if there is none."""
    for axis in analysis.study.axes:
        if len({*_numbers(analysis, axis)} - {None}) > 1:
            return axis
    return None


def _scale(panel: Axes, numbers: Any, label: str) -> None:
    """An axis for some numbers, logarithmic if they are of other sizes, with ticks at settings."""
    panel.set_xlabel(label)
    if not 0 < 8 * numbers.min() <= numbers.max():
        return
    panel.set_xscale("log")
    places = LogLocator(subs=(1, 2, 5)) if label == PARAMETERS else FixedLocator(sorted({*numbers}))
    panel.xaxis.set_major_locator(places)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_locator(NullLocator())


def layer_similarity(analysis: Analysis, title: str) -> Figure | None:
    """What each layer changes, as in Figure 1: L2 distance and angle between its input and output,
    by row.
    """
    layers: Any = analysis.frame.layers
    if layers.empty:
        return None
    paper = analysis.experiment.paper_figure
    return draw_layers(
        layers, title, _looks(analysis), paper, _missing(analysis, set(layers["row"]))
    )


def draw_layers(
    layers: Any,
    title: str,
    looks: Mapping[str, Look],
    paper: PaperFigure | None,
    missing: Sequence[str] = (),
) -> Figure:
    """Figure 1 of a table of layers with the columns row, layer, token, l2_distance and degrees, a
    line a row.
    """
    figure, panels = drawing.sheet(4 if paper else 2)
    for place, (metric, words) in enumerate(LAYERS.items()):
        for row, look in looks.items():
            own = layers[layers["row"] == row]
            points = own.groupby("layer")[metric].agg(["mean", "std"]).reset_index()
            points = points.set_axis(["x", "mean", "sd"], axis=1)
            drawing.draw_line(panels[place], points, row, look)
        panels[place].set(title="here", xlabel="layer")
        if paper:
            drawing.draw_paper(panels[place + 2], paper, metric, looks)
        for panel in panels[place::2]:
            panel.set_ylabel(words)
            panel.set_ylim(bottom=0)
            panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    return drawing.finish(figure, title, panels, missing)


def _papers(analysis: Analysis, metric: str) -> list[float]:
    """The paper's numbers of the rows; NaN where it has none."""
    cells = analysis.frame.cells.get(PAPER + metric, {})
    return [printed(cells.get(row, "")) for row in analysis.rows]


def _draw_floors(panel: Axes, analysis: Analysis, metric: str) -> None:
    """What a score is where nothing is learnt, dotted, and from single segments, dashed; left out
    where the panel's lines would become too flat to read (see draw_floor()).
    """
    if panel.lines:
        segments: Any = analysis.summary.loc[metric, "segments"]
        drawing.draw_floor(panel, analysis.floor(metric), NOTHING_LEARNT, ":")
        drawing.draw_floor(panel, segments.mean(), "single segments", "--")


def _labels(analysis: Analysis) -> dict[str, list[str]]:
    """The labels of each row, in the order of the axes."""
    rows: Any = analysis.frame.rows.set_index("row")
    return rows[analysis.study.axes].T.to_dict("list")


def _looks(analysis: Analysis) -> dict[str, Look]:
    """The look of each row, the same in all figures of a study."""
    return drawing.looks(_labels(analysis))


def _numbers(analysis: Analysis, axis: str) -> list[float | None]:
    """The number of each row on an axis; that of its label, if it stands for several settings."""
    numbers = []
    for row in analysis.rows:
        value = number_in(analysis.frame.cells[HERE + axis][row])
        label = analysis.frame.cells[axis][row]
        numbers.append(number_in(label) if value is None else value)
    return numbers


def _missing(analysis: Analysis, having: set[str]) -> list[str]:
    """The rows that a figure lacks, each with the reason."""
    reasons = {row: point.reason for row, point in analysis.points}
    return [
        f"{row}, {reasons.get(row) or 'no run has it'}"
        for row in analysis.rows
        if row not in having
    ]
