"""The data of a study for figures: the rows with runs, and their lines over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from albert_lab.analysis.analysis import Analysis
from albert_lab.figures.drawing import Line, Look, counted
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Row, RowNames

Point = tuple[float, float]  # x and y


@dataclass(frozen=True)
class FigureData:
    """The experiment of a study, the axes of its table, and its rows that have a finished run."""

    experiment: Experiment
    axes: list[str]
    rows: list[Row]

    @property
    def runs(self) -> list[ReportedRun]:
        return list({run.name: run for row in self.rows for run in row.runs}.values())

    def name(self, row: Row) -> str:
        """The name of a row, as in sentences."""
        return RowNames(self.experiment, [row])({axis: row.labels[axis] for axis in self.axes})

    def word(self, row: Row, axis: str, *, paper: bool = False) -> str:
        """The value of an axis in a row: ours, with the paper's value that it replaces, if any, or only the paper's."""
        names = RowNames(self.experiment, () if paper else [row])
        return names({axis: row.labels[axis]})

    @property
    def looks(self) -> list[Look]:
        """The look of each row: if the table has two axes, colour shows one and the line style the other."""
        rows, axes = self.rows, self.axes
        if len(axes) != 2:
            return [(number, number) for number in range(len(rows))]
        labels = [list(dict.fromkeys(row.labels[axis] for row in rows)) for axis in axes]
        first, second = sorted((0, 1), key=lambda place: -len(labels[place]))  # there are more colours than lines
        return [
            (labels[first].index(row.labels[axes[first]]), labels[second].index(row.labels[axes[second]]))
            for row in rows
        ]

    def lines(self, x: str, column: str) -> list[tuple[Look, Line]]:
        """Look and line of each row that has a column in its learning curves, against x and over its seeds."""
        drawn = []
        for look, row in zip(self.looks, self.rows, strict=True):
            if parts := curves_of(row, x, column):
                drawn.append((look, over_seeds(self.name(row), parts)))
        return drawn


def curve_of(run: ReportedRun, x: str, column: str) -> list[Point]:
    pairs = ((point.value(x), point.value(column)) for point in run.shown_curve)
    return [(at, value) for at, value in pairs if at is not None and value is not None]


def curves_of(row: Row, x: str, column: str) -> list[list[Point]]:
    """The learning curves of a row's runs; those without the numbers are left out."""
    return [points for run in row.runs if (points := curve_of(run, x, column))]


def over_seeds(label: str, parts: Sequence[Sequence[Point]], unit: str | None = "seed") -> Line:
    """Mean and standard deviation over runs, point by point and at their ends; unit is the unit of n.

    Of a longer part, the points before its end that others lack are left out.
    """
    length = min(len(part) for part in parts)
    together = np.array([[*part[: length - 1], part[-1]] for part in parts], dtype=float)  # [runs, points, x and y]
    mean = together.mean(axis=0)
    sd = together[:, :, 1].std(axis=0, ddof=1).tolist() if len(parts) > 1 else None
    of = counted([len(parts)], unit) if unit else ""
    return Line(label, mean[:, 0].tolist(), mean[:, 1].tolist(), sd, of)


def figure_data(analysis: Analysis) -> FigureData:
    return FigureData(analysis.experiment, analysis.axes, [row for row in analysis.rows if row.runs])
