"""The paper's tables from the table of runs: one row a configuration, mean and spread over seeds."""

from dataclasses import dataclass

import pandas as pd

from albert_lab.errors import ConfigError
from albert_lab.lab.experiment import Experiment


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
    runs: pd.DataFrame
    missing: dict[str, str]

    def spread(self, column: str) -> Spread | None:
        """Mean and spread of a column over the row's runs; None when no run has it."""
        if column not in self.runs or self.runs[column].dropna().empty:
            return None
        values = self.runs[column].dropna().astype(float)
        return Spread(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None, len(values))


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
    used = results[results["run"].isin(points["run"])] if len(results) else results
    if len(used) and used["evaluation_set"].nunique() > 1:
        sets = used.groupby("evaluation_set")["run"].apply(lambda names: ", ".join(names))
        raise ConfigError(f"these runs were scored on different held-out sets and make no table: {'; '.join(sets)}")
    labels = [f"paper_{axis}" for axis in axes]
    found = []
    for _, group in points.groupby([*axes, *labels], sort=False):
        first = group.iloc[0]
        runs = used[used["run"].isin(group["run"])] if len(used) else used
        finished = set(runs["run"]) if len(runs) else set()
        found.append(
            Row(
                labels={axis: str(first[f"paper_{axis}"]) for axis in axes},
                values={axis: str(first[axis]) for axis in axes},
                runs=runs,
                missing={
                    str(point["run"]): str(point["reason"])
                    for _, point in group.iterrows()
                    if point["run"] not in finished
                },
            )
        )
    return found


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
