"""The paper's tables from the table of runs: one row per configuration, mean and spread over seeds."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.runs.finetunings import AVERAGE
from albert_lab.runs.reported import REMEDY
from albert_lab.studies.experiment import Experiment

INTRINSIC_HEADINGS = {"mlm_accuracy": "MLM", "nsp_accuracy": "NSP", "sop_accuracy": "SOP"}

AXIS_NAMES = {"embedding_size": "E", "inter_sentence": "loss"}  # as the paper heads them

Run = dict[str, Any]  # a run as runs.tables.row() returns it


@dataclass(frozen=True)
class Column:
    """A column of scores: its key in the table of runs, its heading, and the paper's column that shows the same.

    parts are the keys of scores that the column is the mean of (F1 and EM).
    """

    key: str
    heading: str
    paper: str | None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spread:
    """A quantity of one row over n seeds of pre-training, or n rounds: mean and standard deviation (None for n = 1)."""

    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True)
class Row:
    """One row of a table: labels by axis as in the paper, values by axis as run here, and its runs with their seeds.

    missing maps each missing run to its reason. rounds has columns that were measured side by side with all other rows
    of the table, with their values by round; such a measurement replaces the values of the runs in comparisons.
    """

    labels: dict[str, str]
    values: dict[str, str]
    runs: list[Run]
    missing: dict[str, str]
    rounds: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def having(self, column: str) -> list[Run]:
        """The row's runs that have a number in a column."""
        return [run for run in self.runs if column in run and not math.isnan(run[column])]

    def spread(self, column: str) -> Spread | None:
        """Mean and spread of a column over the row's runs; None when no run has it."""
        return _spread([float(run[column]) for run in self.having(column)])

    def compared(self, column: str) -> Spread | None:
        """Mean and spread of a column for comparisons with other rows: over rounds if measured so, else over runs."""
        return _spread(self.rounds[column]) if column in self.rounds else self.spread(column)


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


@contextmanager
def fitting(folder: Path) -> Iterator[None]:
    """A context in which a report is made from the files of a folder, each of which can be read.

    Raises:
        DamagedFileError: the files contradict each other: a column, a row or a number is missing or different.
    """
    try:
        yield
    except (ConfigError, MissingDataError):
        raise
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError) as error:
        problem = f"its files do not fit together ({type(error).__name__}: {error})"
        raise DamagedFileError(folder, problem, REMEDY) from error


def intrinsic_columns(experiment: Experiment) -> list[Column]:
    """The columns scored on held-out text."""
    return [Column(key, INTRINSIC_HEADINGS[key], key) for key in experiment.columns if key in INTRINSIC_HEADINGS]


def task_columns(experiment: Experiment, tunings: pd.DataFrame) -> list[Column]:
    """The average and the columns of fine-tuned tasks under their names; empty if nothing was fine-tuned.

    The average comes first: claims are about it, and a screen is narrower than the table.
    """
    lines = {line["task"]: line for line in tunings.to_dict("records")}
    order = [*experiment.columns, *lines]
    found = []
    for line in sorted(lines.values(), key=lambda line: order.index(line["column"])):
        metrics = line["metric"].split(" and ")
        parts = tuple(f"{line['task']}_{metric}" for metric in metrics) if len(metrics) > 1 else ()
        found.append(Column(line["task"], line["title"], line["task"], parts))
    if found and AVERAGE in experiment.columns:
        is_official = all(line["task"] == line["column"] for line in lines.values())
        found.insert(0, Column(AVERAGE, "Avg", AVERAGE if is_official else None))
    return found


def half_up(value: Decimal) -> Decimal:
    """Round to one decimal as the paper does: 0.85 becomes 0.9."""
    return value.quantize(Decimal("0.1"), ROUND_HALF_UP)


def rows(experiment: Experiment, points: pd.DataFrame, results: pd.DataFrame) -> list[Row]:
    """The rows of an experiment's table, in the order of its grid.

    Args:
        experiment: the axes.
        points: one row per point: each axis, `paper_<axis>`, seed, run, state, reason.
        results: the table of finished runs, by `run`.

    Raises:
        ConfigError: runs that were scored on different held-out sets.
    """
    axes = axes_of(experiment, points)
    used = results.to_dict("records")
    asked = set(points["run"])
    runs = {record["run"]: record for record in used if record["run"] in asked}
    _check_one_set(runs)
    found: dict[tuple[str, ...], Row] = {}
    for point in points.to_dict("records"):
        values = {axis: str(point[axis]) for axis in axes}
        labels = {axis: str(point[f"paper_{axis}"]) for axis in axes}
        row = found.setdefault((*values.values(), *labels.values()), Row(labels, values, [], {}))
        if point["run"] in runs:
            row.runs.append({"seed": int(point["seed"]), **runs[point["run"]]})
        else:
            row.missing[point["run"]] = str(point["reason"]) or "its record is not in this report"
    return list(found.values())


def _check_one_set(runs: Mapping[str, Run]) -> None:
    sets: dict[str, list[str]] = {}
    for name, run in runs.items():
        sets.setdefault(run["evaluation_set"], []).append(name)
    if len(sets) > 1:
        groups = "; ".join(", ".join(names) for names in sets.values())
        raise ConfigError(f"these runs were scored on different held-out sets and make no table: {groups}")


def axes_of(experiment: Experiment, points: pd.DataFrame) -> list[str]:
    """The axes of a table: the experiment's, then those that the command line added."""
    added = [column[len("paper_") :] for column in points.columns if column.startswith("paper_")]
    return [axis for axis in experiment.axes if axis in added] + [axis for axis in added if axis not in experiment.axes]


def axis_names(axes: Iterable[str]) -> list[str]:
    """Headings of the axes."""
    return [AXIS_NAMES.get(axis, axis) for axis in axes]


def axis_labels(experiment: Experiment, row: Row, axes: Iterable[str]) -> list[str]:
    """The row's labels of axes; if a value replaces one that the paper prints, the label has both."""
    found = []
    for axis in axes:
        value, label = row.values[axis], row.labels[axis]
        stands_in = value != label and _is_printed(experiment, axis, label)
        found.append(f"{value} (paper: {label})" if stands_in else label)
    return found


def named_labels(experiment: Experiment, row: Row, axes: Iterable[str]) -> list[str]:
    """The labels as axis_labels() gives them; a number, true or false stands after the name of its axis."""
    axes = list(axes)
    return [
        f"{AXIS_NAMES.get(axis, axis)} = {shown}" if is_bare(row.labels[axis]) else shown
        for axis, shown in zip(axes, axis_labels(experiment, row, axes), strict=True)
    ]


def is_bare(label: str) -> bool:
    """Whether a label says nothing without the name of its axis: a number, true or false."""
    return label in ("true", "false") or label.replace(".", "", 1).isdigit()


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
