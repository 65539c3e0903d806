"""The rows of a table: one per configuration with its runs, their mean and spread over seeds, and its columns."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal

from albert_lab.measures.catalog import labels, units
from albert_lab.runs.reported import AVERAGE, FilledColumn, ReportedRun, part_name
from albert_lab.studies.claims import AXIS_NAMES, Labels, is_bare, number_in
from albert_lab.studies.experiment import Experiment, scores
from albert_lab.tasks.metrics import label


@dataclass(frozen=True)
class Column:
    """A column of scores: its name among the numbers of a run, its heading, and the paper's column that shows the same.

    parts are the scores that the column is the mean of, by their labels (F1 and EM). unit is that of its values.
    """

    key: str
    heading: str
    paper: str | None
    parts: Mapping[str, str] = field(default_factory=dict)
    unit: str = "%"


@dataclass(frozen=True)
class Spread:
    """A quantity of one row over n seeds of pre-training: mean and standard deviation (None for n = 1)."""

    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True)
class Row:
    """One row of a table: labels by axis as in the paper, values by axis as run here, and its runs.

    missing maps each missing run to its reason.
    """

    labels: dict[str, str]
    values: dict[str, str]
    runs: list[ReportedRun]
    missing: dict[str, str]

    def having(self, column: str) -> list[ReportedRun]:
        return [run for run in self.runs if column in run.numbers]

    def spread(self, column: str) -> Spread | None:
        """Mean and spread of a column over the row's runs; None when no run has it."""
        return _spread([run.numbers[column] for run in self.having(column)])


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


def intrinsic_columns(experiment: Experiment) -> list[Column]:
    others = {*scores(), *experiment.own_tasks}
    named = labels() | {key: key for key in experiment.recorded_columns if key not in others}
    return [Column(key, named[key], key, unit=units().get(key, "%")) for key in experiment.columns if key in named]


def filled_columns(table: Iterable[Row]) -> dict[str, FilledColumn]:
    return {column.column: column for row in table for run in row.runs for column in run.columns}


def task_columns(experiment: Experiment, table: Sequence[Row]) -> list[Column]:
    """The average and the columns of fine-tuned tasks under their names; empty if nothing was fine-tuned.

    The average comes first: claims are about it, and a screen is narrower than the table.
    """
    filled = filled_columns(table)
    order = [*experiment.columns, *filled]
    columns = []
    for column in sorted(filled.values(), key=lambda column: order.index(column.column)):
        metrics = column.metrics if len(column.metrics) > 1 else ()
        parts = {label(metric): part_name(column.task, metric) for metric in metrics}
        columns.append(Column(column.task, column.title, column.task, parts))
    if columns and AVERAGE in experiment.columns:
        is_official = all(column.task == name for name, column in filled.items())
        columns.insert(0, Column(AVERAGE, "Avg", AVERAGE if is_official else None))
    return columns


def half_up(value: Decimal) -> Decimal:
    """Round to one decimal as the paper does: 0.85 becomes 0.9."""
    return value.quantize(Decimal("0.1"), ROUND_HALF_UP)


def axis_names(axes: Iterable[str]) -> list[str]:
    return [AXIS_NAMES.get(axis, axis) for axis in axes]


def axis_labels(experiment: Experiment, row: Row, axes: Iterable[str]) -> list[str]:
    """The row's labels of axes; if a value replaces one that the paper prints, the label has both."""
    labels = []
    for axis in axes:
        value, label = row.values.get(axis, row.labels[axis]), row.labels[axis]
        is_replaced = value != label and _is_printed(experiment, axis, label)
        labels.append(f"{value} (paper: {label})" if is_replaced else label)
    return labels


class RowNames:
    """The names of the rows of a table in sentences, made of the cells of the table: E = 36 (paper: 768), all-shared.

    A number, true or false stands after the name of its axis. The only value of an axis is left out.
    """

    def __init__(self, experiment: Experiment, table: Iterable[Row]) -> None:
        only = {axis: next(iter(experiment.grid[axis])) for axis in experiment.axes if len(experiment.grid[axis]) == 1}
        self._left_out = only if len(only) < len(experiment.axes) else {}
        self._cells: dict[tuple[str, str], list[str]] = {}  # of a label: several if its value depends on the row
        for row in table:
            for (axis, own), cell in zip(row.labels.items(), axis_labels(experiment, row, row.labels), strict=True):
                cells = self._cells.setdefault((axis, own), [])
                shown = own if number_in(own) is None else cell  # BERT-large, With dropout: names, not values
                cells += [shown] if shown not in cells else []

    def __call__(self, labels: Labels) -> str:
        return ", ".join(self._word(axis, label) for axis, label in labels.items() if self._left_out.get(axis) != label)

    def _word(self, axis: str, label: str) -> str:
        cells, papers = self._cells.get((axis, label), [label]), f" (paper: {label})"
        values = [cell.removesuffix(papers) for cell in cells]
        shown = " or ".join(values) + (papers if cells != values else "")
        return f"{AXIS_NAMES.get(axis, axis)} = {shown}" if is_bare(values[0]) else shown


def told_apart(experiment: Experiment, rows: Sequence[Row]) -> list[Row]:
    """The rows, those of other labels but one value with the settings in which they differ: small, all-shared, E = 18.

    Such rows set several keys, and have the value of the first: BERT-large and ALBERT-large are of one shape.
    """
    return [
        replace(row, values={axis: _told_apart(experiment, row, axis, rows) for axis in row.values}) for row in rows
    ]


def _told_apart(experiment: Experiment, row: Row, axis: str, rows: Sequence[Row]) -> str:
    value = row.values[axis]
    alike = [other for other in rows if other.values[axis] == value and other.runs]
    choice = experiment.grid.get(axis, {}).get(row.labels[axis])
    if len({other.labels[axis] for other in alike}) < 2 or not isinstance(choice, tuple) or not row.runs:
        return value
    keys = [text.split("=")[0] for text in choice]
    differing = [key for key in keys if len({other.runs[0].record.config.value(key) for other in alike}) > 1]
    settings = {key: row.runs[0].record.config.value(key) or "" for key in differing}
    words = [f"{AXIS_NAMES.get(key, key)} = {own}" if is_bare(own) else own for key, own in settings.items()]
    return ", ".join([value, *words])


def _is_printed(experiment: Experiment, axis: str, label: str) -> bool:
    rows = experiment.paper.rows if experiment.paper else ()
    curves = experiment.paper_figure.curves if experiment.paper_figure else ()
    return any(cells[axis] == label for cells in rows if axis in cells) or any(curve.row == label for curve in curves)


def paper_cells(experiment: Experiment, row: Row) -> dict[str, str]:
    """The paper's cells in the row of the same labels; empty if there is none."""
    if experiment.paper is None:
        return {}
    for cells in experiment.paper.rows:
        if all(row.labels.get(axis) == cells[axis] for axis in experiment.axes):
            return {key: cells[key] for key in experiment.paper.columns if key in cells}
    return {}
