"""The paper's tables from the table of runs: one row a configuration, mean and spread over seeds."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from albert_lab.errors import ConfigError
from albert_lab.lab.experiment import Experiment

Run = dict[str, Any]  # one line of results.csv


@dataclass(frozen=True)
class Spread:
    """A quantity over the pre-training seeds of one row: mean, standard deviation (None for one seed), and n seeds."""

    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True)
class Row:
    """One row of a table: labels by axis as in the paper, values by axis as run here, and its runs.

    missing says of each run that is not there why it is not.
    """

    labels: dict[str, str]
    values: dict[str, str]
    runs: list[Run]
    missing: dict[str, str]

    def spread(self, column: str) -> Spread | None:
        """Mean and spread of a column over the row's runs; None when no run has it."""
        values = [float(run[column]) for run in self.runs if column in run and not math.isnan(run[column])]
        if not values:
            return None
        return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


def rows(experiment: Experiment, points: pd.DataFrame, results: pd.DataFrame) -> list[Row]:
    """The rows of an experiment's table, in the order of its grid.

    Args:
        experiment: the axes.
        points: one row a run asked for: each axis, `paper_<axis>`, seed, run, state, reason.
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
            row.runs.append(runs[point["run"]])
        else:
            row.missing[point["run"]] = str(point["reason"])
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


def paper_cells(experiment: Experiment, row: Row) -> dict[str, str]:
    """What the paper prints in the row of the same labels; empty when it has none."""
    if experiment.paper is None:
        return {}
    for cells in experiment.paper.rows:
        if all(row.labels.get(axis) == cells[axis] for axis in experiment.axes):
            return {key: cells[key] for key in experiment.paper.columns if key in cells}
    return {}
