"""The content of each figure: a function from a study to the figure, or None if the study has no data for it.

The function of a figure of studies/figure.py has its name, with underscores.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from albert_lab.figures import drawing
from albert_lab.figures.data import FigureData, over_seeds
from albert_lab.figures.drawing import READ_OFF, Line
from albert_lab.measures.catalog import labels, probes, units
from albert_lab.runs.reported import AVERAGE, AVERAGED, ReportedRun
from albert_lab.runs.results import TRAINING_SPEED
from albert_lab.score import CHANCE, SEGMENTS, Floor
from albert_lab.studies.claims import number_in
from albert_lab.studies.experiment import PaperFigure
from albert_lab.studies.table import Row, Spread, paper_cells
from albert_lab.training.layer_numbers import Layer

AXES = {
    **{
        name: f"held-out {label}{' accuracy' * name.endswith('_accuracy')} ({units()[name]})"
        for name, label in labels().items()
    },
    "l2_distance": "L2 distance",
    "degrees": "angle (degrees)",
}
ALONG = {"step": "optimizer steps", "training_seconds": "training time (seconds)"}
TOKENS = {"cls": "[CLS]", "mean": "mean over tokens"}
SCORES = {"mlm_accuracy": AXES["mlm_accuracy"], AVERAGE: "average of our tasks (%)"}
MOST_BANDS = 4  # more bands would hide the lines
MOST_PANELS = 4  # in a row
PAPERS_SCORE = "average of five tasks (%)"


def learning_curves(data: FigureData) -> Figure | None:
    """Held-out accuracy during training with its floors, one panel per column of the experiment.

    Differences of two accuracies are left out: the few answers along the way say little about them.
    """
    columns = [column for column in data.experiment.columns if data.lines("step", column)]
    columns = [column for column in columns if units().get(column, "%") == "%"]
    if not columns:
        return None
    rows = 1 if len(columns) <= MOST_PANELS else 2
    figure, grid = drawing.sheet(rows, math.ceil(len(columns) / rows))
    panels = [panel for row in grid for panel in row]
    for panel in panels[len(columns) :]:
        panel.remove()
    for panel, column in zip(panels, columns, strict=False):
        _draw_curves(data, panel, column)
    drawing.legend_below(figure, panels[: len(columns)])
    return figure


def arms(data: FigureData) -> Figure | None:
    """Held-out MLM accuracy during training, next to the paper's curves (Figures 2a and 2b)."""
    if not data.lines("step", "mlm_accuracy"):
        return None
    paper = data.experiment.paper_figure
    figure, (panels,) = drawing.sheet(1, 2 if paper else 1)
    _draw_curves(data, panels[0], "mlm_accuracy")
    if (parting := _parting(data)) is not None:
        drawing.draw_parting(panels[0], parting)
    panels[0].set_title("ours")
    if paper:
        _draw_paper(panels[1], paper, "mlm_accuracy")
        panels[1].set_ylabel("dev MLM accuracy (%)")
    drawing.legends_under(figure, panels)
    return figure


extra_data = dropout = arms


def _parting(data: FigureData) -> float | None:
    """The last x at which all rows have the same curve, the trunk's; None if they never separate or never coincide."""
    first, *others = [line for _, line in data.lines(along(data), "mlm_accuracy")]
    shared = list(zip(first.x, first.mean, strict=True))
    for line in others:
        equal = [a == b for a, b in zip(shared, zip(line.x, line.mean, strict=True), strict=False)]
        shared = shared[: [*equal, False].index(False)]
    return shared[-1][0] if 0 < len(shared) < len(first.x) else None


def _draw_curves(data: FigureData, panel: Axes, column: str) -> None:
    lines = data.lines(along(data), column)
    for look, line in lines:
        drawing.draw_line(panel, line, look, band=len(lines) <= MOST_BANDS)
    _draw_floors(panel, data.rows, column)
    panel.set(xlabel=ALONG[along(data)], ylabel=AXES[column])


def along(data: FigureData) -> str:
    """The horizontal axis of curves: seconds for a budget in seconds, else steps."""
    return "training_seconds" if any(run.record.config.budget.unit == "seconds" for run in data.runs) else "step"


def _draw_floors(panel: Axes, rows: Sequence[Row], column: str) -> None:
    of_rows = [floors(row.runs, column) for row in rows]
    heights = floors([run for row in rows for run in row.runs], column)

    def differs(name: Floor) -> bool:
        return len({round(own[name], 1) for own in of_rows if name in own}) > 1

    drawing.draw_floors(panel, heights, [*filter(differs, heights)])


def floors(runs: Iterable[ReportedRun], column: str) -> dict[Floor, float]:
    """The floors of a column of scores in percent, each its mean over the runs."""
    by_floor: dict[Floor, list[float]] = {}
    for run in {run.name: run for run in runs}.values():
        for name, height in _floors(run, column).items():
            by_floor.setdefault(name, []).append(height)
    return {name: statistics.fmean(heights) for name, heights in by_floor.items()}


def _floors(run: ReportedRun, column: str) -> dict[Floor, float]:
    if column == AVERAGE:
        of_tasks = {filled.column: filled.score.floor for filled in run.columns}
        return {CHANCE: statistics.fmean(of_tasks[task] for task in AVERAGED)} if {*AVERAGED} <= {*of_tasks} else {}
    return run.scores[column].floors if column in run.scores else {}


def _draw_paper(panel: Axes, paper: PaperFigure, column: str, first: int = 0) -> None:
    for index, curve in enumerate((curve for curve in paper.curves if curve.panel == column), first):
        drawing.draw_paper_curve(panel, curve, index)
    panel.set(title=f"paper, {paper.figure} ({READ_OFF})", xlabel=paper.x, ylabel=AXES[column])


def layer_similarity(data: FigureData) -> Figure | None:
    lines = {data.name(row): [run.layers for run in row.runs if run.layers] for row in data.rows}
    lines = {name: parts for name, parts in lines.items() if parts}
    return draw_layers(lines, data.experiment.paper_figure, unit="seed") if lines else None


def draw_layers(
    lines: Mapping[str, Sequence[Sequence[Layer]]], paper: PaperFigure | None, *, unit: str | None
) -> Figure:
    """L2 distance and angle by layer, for [CLS] and for the mean over tokens, with the paper's in separate panels.

    Args:
        unit: the unit of n in labels; None if labels are complete. Then no line is a row of the paper.
    """
    figure, panels = drawing.sheet(2, 3 if paper else 2)
    for (cls, mean, *rest), column in zip(panels, ("l2_distance", "degrees"), strict=True):
        mean.sharey(cls)
        for panel, (token, title) in zip((cls, mean), TOKENS.items(), strict=True):
            for index, (name, parts) in enumerate(lines.items()):
                chosen = [
                    [(point.layer, getattr(point, column)) for point in part if point.token == token] for part in parts
                ]
                drawing.draw_line(panel, over_seeds(name, chosen, unit=unit), index)
            panel.set(title=title, xlabel="layer", ylabel=AXES[column])
        for panel in rest:
            assert paper is not None
            _draw_paper(panel, paper, column, 0 if unit else len(lines))
        for panel in (cls, mean, *rest):
            panel.set_ylim(bottom=0)
            drawing.whole_numbers(panel)
    for panel in panels[0][2:]:
        panel.legend()
    drawing.legend_below(figure, panels[0][:2])
    return figure


def sharing_tradeoff(data: FigureData) -> Figure | None:
    def ours(row: Row) -> float:
        spread = row.spread("parameters")
        assert spread is not None, "a finished run has parameters"
        return spread.mean / 1e6

    def papers(cells: Mapping[str, str]) -> float:
        return float(cells["parameters"].removesuffix("M"))

    return _scores(data, "embedding_size", ours, papers, "parameters (millions)", markers="sharing")


def embedding_size(data: FigureData) -> Figure | None:
    def ours(row: Row) -> float:
        return float(row.values["embedding_size"])

    def papers(cells: Mapping[str, str]) -> float:
        return float(cells["embedding_size"])

    return _scores(data, "sharing", ours, papers, "embedding size E (units)", markers=None)


def _scores(
    data: FigureData,
    axis: str,
    ours: Callable[[Row], float],
    papers: Callable[[Mapping[str, str]], float],
    x_label: str,
    *,
    markers: str | None,
) -> Figure | None:
    """Our scores and the paper's average, side by side: one line per value of an axis, at the x of each row."""
    drawn = [row for row in data.rows if {"sharing", "embedding_size"} <= row.values.keys()]
    columns = [column for column in SCORES if any(row.spread(column) for row in drawn)]
    if not columns:
        return None
    kinds = list(dict.fromkeys(row.labels[markers] for row in drawn)) if markers else []
    printed = [(row, row.labels | paper_cells(data.experiment, row)) for row in drawn]
    printed = [(row, cells) for row, cells in printed if "average" in cells]
    figure, (panels,) = drawing.sheet(1, len(columns) + bool(printed))

    def draw(panel: Axes, points: Sequence[tuple[Row, float, Spread]], *, paper: bool) -> None:
        groups: dict[str, list[tuple[Row, float, Spread]]] = {}
        for point in points:
            groups.setdefault(data.word(point[0], axis, paper=paper), []).append(point)
        for index, (name, group) in enumerate(groups.items()):
            group.sort(key=lambda point: point[1])
            line = Line.of_spreads(name, [x for _, x, _ in group], [spread for _, _, spread in group])
            drawing.draw_line(panel, line, index, paper=paper, marker=not markers)
            for row, x, spread in group:
                if markers:
                    kind = kinds.index(row.labels[markers])
                    drawing.draw_marker(panel, x, spread.mean, index, kind, paper=paper)
        panel.set(xscale="log", xlabel=x_label)
        drawing.plain_ticks(panel, sorted({x for _, x, _ in points}) if not markers else None)

    for panel, column in zip(panels, columns, strict=False):
        draw(panel, [(row, ours(row), spread) for row in drawn if (spread := row.spread(column))], paper=False)
        _draw_floors(panel, drawn, column)
        panel.set(title="ours", ylabel=SCORES[column])
    if printed:
        assert data.experiment.paper is not None
        cells_of = [(row, papers(cells), Spread(float(cells["average"]), None, 1)) for row, cells in printed]
        draw(panels[-1], cells_of, paper=True)
        panels[-1].set(title=f"paper, {data.experiment.paper.table.partition(' (')[0]}", ylabel=PAPERS_SCORE)
    drawing.legends_under(figure, panels)
    drawing.marker_legend(figure, kinds)
    return figure


def scores_by_setting(data: FigureData) -> Figure | None:
    """Accuracies of pairs against a numeric axis, one line for each column, and a panel for each label of another axis.

    Floors of single segments are drawn in the colours of their columns; that of constant answers if it is one for all.
    """
    numeric = [axis for axis in data.axes if len({_number(row, axis) for row in data.rows} - {None}) > 1]
    if not numeric or len(data.axes) > 2:
        return None
    axis, others = numeric[0], [axis for axis in data.axes if axis != numeric[0]]
    groups: dict[str, list[tuple[float, Row]]] = {}
    for row in data.rows:
        if (x := _number(row, axis)) is not None:
            groups.setdefault("".join(data.word(row, other) for other in others), []).append((x, row))
    columns = [name for name in data.experiment.columns if name != "mlm_accuracy" and units().get(name) == "%"]
    figure, (panels,) = drawing.sheet(1, len(groups))
    for panel, (name, rows) in zip(panels, groups.items(), strict=True):
        panel.sharey(panels[0])
        rows.sort(key=lambda place: place[0])
        for look, column in enumerate(columns):
            points = [(x, spread) for x, row in rows if (spread := row.spread(column))]
            if points:
                xs, spreads = zip(*points, strict=True)
                drawing.draw_line(panel, Line.of_spreads(labels()[column], xs, spreads), look)
            by_row = [(x, floors(row.runs, column).get(SEGMENTS)) for x, row in rows if column not in probes()]
            if heights := [(x, height) for x, height in by_row if height is not None]:
                drawing.draw_floor_of_places(panel, heights, f"{SEGMENTS}, in the colour of its score", look)
        constant = {round(height, 1) for column in columns if (height := floors(data.runs, column).get(CHANCE))}
        if len(constant) == 1:
            drawing.draw_floors(panel, {CHANCE: constant.pop()})
        panel.set(title=name, xlabel=axis.rpartition(".")[2].replace("_", " "), ylabel="held-out accuracy (%)")
    drawing.legend_below(figure, panels)
    return figure


def _number(row: Row, axis: str) -> float | None:
    """The value of a row on an axis; its label, if it stands for several settings."""
    value = number_in(row.values[axis])
    return number_in(row.labels[axis]) if value is None else value


def speed(data: FigureData) -> Figure | None:
    """Training throughput of each row; next to it the speed-up over the paper's reference if the paper prints it."""
    measured = [(row, spread) for row in data.rows if (spread := row.spread(TRAINING_SPEED))]
    if not measured:
        return None
    papers = [paper_cells(data.experiment, row).get("speedup") for row, _ in measured]
    base = papers.index("1.0") if "1.0" in papers else None
    figure, (panels,) = drawing.sheet(1, 1 if base is None else 2)
    drawing.draw_rows(panels[0], {"ours": [(spread.mean, spread.sd) for _, spread in measured]})
    drawing.name_rows(figure, panels[0], [f"{data.name(row)} (n = {spread.n})" for row, spread in measured])
    panels[0].set_xlabel("training throughput (tokens per second,\nmean and standard deviation over n seeds)")
    if base is not None:
        reference = measured[base][1].mean
        ours = [(spread.mean / reference, None) for _, spread in measured]
        theirs = [(float(cell.rstrip("x")) if cell else math.nan, None) for cell in papers]
        drawing.draw_rows(panels[1], {"ours": ours, "paper": theirs})
        panels[1].set_xlabel(f"speed-up over {data.name(measured[base][0])} (times)")
        panels[1].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure
