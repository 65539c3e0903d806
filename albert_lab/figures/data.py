"""The data of a study for figures: the rows with runs, and their lines over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from albert_lab.figures.drawing import Line, Look, counted
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study
from albert_lab.studies.table import AXIS_NAMES, Row, axes_of, axis_labels, is_bare


@dataclass(frozen=True)
class FigureData:
    """The experiment and the tables of a study; layers is empty if none were measured."""

    experiment: Experiment
    points: pd.DataFrame
    rows: list[Row]  # those that have a finished run
    results: pd.DataFrame
    curves: pd.DataFrame
    layers: pd.DataFrame

    def name(self, row: Row) -> str:
        """The label of a row: the value of each axis."""
        return ", ".join(self.word(row, axis) for axis in axes_of(self.experiment, self.points))

    def word(self, row: Row, axis: str, *, paper: bool = False) -> str:
        """The value of an axis in a row: ours, with the paper's value that it replaces, if any, or only the paper's."""
        label = row.labels[axis]
        if not is_bare(label):
            return label
        (shown,) = [label] if paper else axis_labels(self.experiment, row, [axis])
        return f"{AXIS_NAMES.get(axis, axis)} = {shown}"

    @property
    def looks(self) -> list[Look]:
        """The look of each row: if the table has two axes, colour shows one and the line style the other."""
        rows = self.rows
        axes = axes_of(self.experiment, self.points)
        if len(axes) != 2:
            return [(number, number) for number in range(len(rows))]
        labels = [list(dict.fromkeys(row.labels[axis] for row in rows)) for axis in axes]
        first, second = sorted((0, 1), key=lambda place: -len(labels[place]))  # there are more colours than lines
        return [
            (labels[first].index(row.labels[axes[first]]), labels[second].index(row.labels[axes[second]]))
            for row in rows
        ]

    def lines(self, table: pd.DataFrame, x: str, column: str) -> list[tuple[Look, Line]]:
        """Look and line of each row of a table: a column against x over its seeds."""
        found = []
        for look, row in zip(self.looks, self.rows, strict=True):
            parts = parts_of(table, [run["run"] for run in row.runs])
            if parts:
                found.append((look, over_seeds(self.name(row), parts, x, column)))
        return found


def where(table: pd.DataFrame, column: str, value: str) -> pd.DataFrame:
    """The rows of a table that have a value in a column."""
    return table.loc[table[column] == value, :]


def parts_of(table: pd.DataFrame, runs: Sequence[str]) -> list[pd.DataFrame]:
    """The rows of a table for each run in it."""
    if "run" not in table:
        return []
    return [part for run in runs if len(part := where(table, "run", run))]


def over_seeds(label: str, parts: Sequence[pd.DataFrame], x: str, column: str, unit: str | None = "seed") -> Line:
    """Mean and standard deviation over runs, point by point, up to the end of the shortest; unit is the unit of n."""
    length = min(len(part) for part in parts)
    values = pd.DataFrame([part[column].to_numpy()[:length] for part in parts])
    at = pd.DataFrame([part[x].to_numpy()[:length] for part in parts]).mean()
    sd = values.std(ddof=1).tolist() if len(parts) > 1 else None
    return Line(label, at.tolist(), values.mean().tolist(), sd, counted([len(parts)], unit) if unit else "")


def figure_data(study: Study) -> FigureData:
    """The data of a study for figures."""
    rows = [row for row in study.rows if row.runs]
    return FigureData(study.experiment, study.points, rows, study.results, study.curves, study.layers)
