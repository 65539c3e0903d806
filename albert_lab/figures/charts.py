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
from albert_lab.analysis.frame import HERE, printed
from albert_lab.figures import drawing
from albert_lab.figures.drawing import Look
from albert_lab.runs.reported import AVERAGE
from albert_lab.studies.claims import AXIS_NAMES, number_in
from albert_lab.studies.experiment import PaperFigure
from albert_lab.training.layers import TOKEN

MOST_PANELS = 3
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
    # Runs of as much time have different steps.
    is_timed = any(run.record.config.budget.unit == "seconds" for run in analysis.study.runs)
    x, x_label = (
        ("training_seconds", "training time (seconds)") if is_timed else ("step", "optimizer steps")
    )
    paper = analysis.experiment.paper_figure
    has_paper = paper is not None and any(curve.panel == shown[0] for curve in paper.curves)
    figure, panels = drawing.sheet(len(shown) + has_paper)
    without: dict[str, list[str]] = {}
    having = set(wide["row"])
    looks = {row: look for row, look in _looks(analysis).items() if row in having}
    for panel, metric in zip(panels, shown, strict=False):
        for row, look in looks.items():
            own = wide[wide["row"] == row].dropna(subset=[metric])
            if len(own):
                drawing.draw_line(panel, _over_seeds(own, x, metric), row, look)
            else:
                without.setdefault(row, []).append(analysis.heading(metric))
        _draw_floors(panel, analysis, metric)
        panel.set(xlabel=x_label, ylabel=f"{analysis.heading(metric)} on held-out text (%)")
    if has_paper and paper:
        labels = {
            "".join(own): look
            for own, look in zip(_labels(analysis).values(), _looks(analysis).values(), strict=True)
        }
        drawing.draw_paper(panels[-1], paper, shown[0], labels)
    missing = [
        f"row {row} in {' and '.join(names)}, for which it has no head"
        for row, names in without.items()
    ]
    missing += _missing(analysis, having)
    return drawing.finish(figure, title, panels, missing)


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
    """The main scores against a numeric axis, a line for each label of the other, and the paper's
    average beside.
    """
    rows: Any = analysis.frame.rows
    places = {
        axis: [_number(row, axis) for _, row in rows.iterrows()] for axis in analysis.study.axes
    }
    axis = next((axis for axis, xs in places.items() if len({*xs} - {None}) > 1), None)
    shown = analysis.drawn[:MOST_PANELS]
    if axis is None or len(analysis.study.axes) > 2 or not shown:
        return None
    others = [other for other in analysis.study.axes if other != axis]
    content = {"x": places[axis], "line": rows[others[0]] if others else "", "row": rows["row"]}
    table: Any = pd.DataFrame(content).dropna()
    papers = rows.get(f"paper_{AVERAGE}")
    has_paper = papers is not None and (papers != "").any()
    figure, panels = drawing.sheet(len(shown) + has_paper)
    for panel, metric in zip(panels, shown, strict=False):
        table["mean"], table["sd"] = (
            _of(analysis, metric, table["row"], part) for part in ("mean", "sd")
        )
        for place, (name, line) in enumerate(
            table.dropna(subset=["mean"]).groupby("line", sort=False)
        ):
            drawing.draw_line(panel, line, str(name), (place, place))
        _draw_floors(panel, analysis, metric)
        panel.set(ylabel=f"{analysis.heading(metric)} (%)")
    if papers is not None and has_paper:
        table["mean"] = [printed(cell) for cell in papers[table.index]]
        table["paper"] = rows.loc[table.index, axis].map(number_in)
        for place, (_, line) in enumerate(table.groupby("line", sort=False)):
            panels[-1].plot(
                line["paper"], line["mean"], **drawing.style((place, place), paper=True)
            )
        panels[-1].set(title="paper, average of five tasks (%)")
    for panel in panels:
        panel.set_xlabel(AXIS_NAMES.get(axis, axis.rpartition(".")[2].replace("_", " ")))
    if min(table["x"]) > 0 and max(table["x"]) >= 8 * min(table["x"]):
        for panel in panels:
            _logarithmic(panel)
    return drawing.finish(figure, title, panels, _missing(analysis, _having(analysis, shown)))


def sharing_tradeoff(analysis: Analysis, title: str) -> Figure | None:
    """The main scores against parameters, a point a row, and the paper's average beside."""
    shown = analysis.drawn[: MOST_PANELS - 1]
    if "parameters" not in analysis.metrics or not shown:
        return None
    rows: Any = analysis.frame.rows.set_index("row")
    has_paper = {"paper_parameters", f"paper_{AVERAGE}"} <= {*rows}
    figure, panels = drawing.sheet(len(shown) + has_paper)
    for row, look in _looks(analysis).items():
        for panel, metric in zip(panels, shown, strict=False):
            (x,), (mean,), (sd,) = (
                _of(analysis, name, [row], part)
                for name, part in (("parameters", "mean"), (metric, "mean"), (metric, "sd"))
            )
            if x == x and mean == mean:
                points = {"x": x / 1e6, "y": mean, "yerr": None if sd != sd else sd}
                panel.errorbar(
                    **points,
                    label=drawing.literal(row),
                    **(drawing.style(look) | {"linestyle": "none", "capsize": 2}),
                )
        if has_paper:
            place = [printed(rows.loc[row, f"paper_{name}"]) for name in ("parameters", AVERAGE)]
            style: dict[str, Any] = drawing.style(look, paper=True) | {"linestyle": "none"}
            panels[-1].plot(place[0] / 1e6, place[1], **style)
    for panel, metric in zip(panels, shown, strict=False):
        _join_rows(panel, analysis, metric)
        if analysis.summary.loc[metric, "sd"].notna().any():
            panel.errorbar([], [], [], color=drawing.FLOOR, capsize=2, label=drawing.SPREAD)
        _draw_floors(panel, analysis, metric)
        panel.set(ylabel=f"{analysis.heading(metric)} (%)")
    if has_paper:
        panels[-1].set(title="paper, average of five tasks (%)")
    for panel in panels:
        panel.set(xscale="log", xlabel="parameters (millions)")
        low, high = panel.get_xlim()
        panel.xaxis.set_major_locator(
            LogLocator(subs=(1, 2, 5)) if high >= 5 * low else MaxNLocator(nbins=4)
        )
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_locator(NullLocator())
    return drawing.finish(figure, title, panels, _missing(analysis, _having(analysis, shown)))


def _join_rows(panel: Axes, analysis: Analysis, metric: str) -> None:
    """Join the rows that differ in one axis alone by a thin line, so that the other, such as E, is
    seen apart.
    """
    together: dict[int, list[str]] = {}
    for row, (_, pattern) in _looks(analysis).items():
        together.setdefault(pattern, []).append(row)
    for pattern, rows in together.items():
        sizes, means = (_of(analysis, name, rows, "mean") for name in ("parameters", metric))
        points = sorted(
            (size / 1e6, mean) for size, mean in zip(sizes, means, strict=True) if mean == mean
        )
        if len(points) > 1:
            xs, ys = zip(*points, strict=True)
            panel.plot(
                xs,
                ys,
                color=drawing.FLOOR,
                linestyle=drawing.LINES[pattern],
                linewidth=0.6,
                zorder=0,
            )


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
    layers = layers[layers["token"] == TOKEN]
    figure, panels = drawing.sheet(4 if paper else 2)
    for (panel, *others), (metric, words) in zip(
        (panels[0::2], panels[1::2]), LAYERS.items(), strict=True
    ):
        for row, look in looks.items():
            own = layers[layers["row"] == row]
            points = own.groupby("layer")[metric].agg(["mean", "std"]).reset_index()
            drawing.draw_line(panel, points.set_axis(["x", "mean", "sd"], axis=1), row, look)
        panel.set(title="here", xlabel="layer", ylabel=words)
        for other in others:
            assert paper is not None
            drawing.draw_paper(other, paper, metric, looks)
            other.set_ylabel(words)
        for each in (panel, *others):
            each.set_ylim(bottom=0)
            each.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    return drawing.finish(figure, title, panels, missing)


def _of(analysis: Analysis, metric: str, rows: Sequence[str], part: str) -> list[float]:
    """A column of the summary for some rows; NaN where there is none."""
    table: Any = analysis.summary[part]
    return [float(table.get((metric, row), np.nan)) for row in rows]


def _draw_floors(panel: Axes, analysis: Analysis, metric: str) -> None:
    """A constant answer, dotted, and single segments, dashed, as means over the rows."""
    if not panel.lines:
        return
    table: Any = analysis.summary.loc[metric]
    for part, words, dashes in (
        ("floor", "a constant answer", ":"),
        ("segments", "single segments", "--"),
    ):
        if table[part].notna().any():
            drawing.draw_floor(panel, table[part].mean(), words, dashes)


def _labels(analysis: Analysis) -> dict[str, list[str]]:
    rows: Any = analysis.frame.rows
    return {row["row"]: [row[axis] for axis in analysis.study.axes] for _, row in rows.iterrows()}


def _looks(analysis: Analysis) -> dict[str, Look]:
    return drawing.looks(_labels(analysis))


def _number(row: Any, axis: str) -> float | None:
    """The value of a row on an axis; its label, if it stands for several settings."""
    value = number_in(row[HERE + axis])
    return number_in(row[axis]) if value is None else value


def _logarithmic(panel: Axes) -> None:
    drawn = [[*np.atleast_1d(line.get_xdata()).astype(float)] for line in panel.lines]
    # that of a floor, over the whole width
    places = sorted({x for xs in drawn for x in xs if xs != [0, 1]})
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator(places))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_locator(NullLocator())


def _having(analysis: Analysis, metrics: Sequence[str]) -> set[str]:
    return {row for metric, row in analysis.summary.index if metric in metrics}


def _missing(analysis: Analysis, having: set[str]) -> list[str]:
    """The rows that a figure lacks, each with the reason."""
    reasons = {
        str(analysis.frame.row(point.labels)): point.reason
        for point in analysis.study.points
        if point.reason
    }
    return [
        f"{row}, {reasons.get(row) or 'no run has it'}"
        for row in analysis.rows
        if row not in having
    ]
