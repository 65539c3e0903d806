"""Claims: sentences of the paper, each with a check from a closed vocabulary that a table of runs can decide."""

import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Labels = dict[str, str]
Grid = Mapping[str, Collection[str]]


class _Claim(BaseModel):
    """What every claim has: the sentence, its section, and the column of the table of runs that it speaks of.

    Bounds and margins of scores are in points (percent), as the paper prints them; of other columns in their own unit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    quote: str = Field(min_length=1)
    section: str = Field(min_length=1)
    metric: str

    @abstractmethod
    def rows(self, grid: Grid) -> list[Labels]:
        """The rows that the claim speaks of, by the paper's labels of the axes."""

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """Check that the table can have what the claim names.

        Raises:
            ValueError: a metric, an axis or a label that is not there; names it and what is allowed.
        """
        known = sorted(metrics)
        if self.metric not in known:
            near = get_close_matches(self.metric, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(known)}"
            raise ValueError(f"metric={self.metric} is no column of the table of runs ({hint})")
        for row in self.rows(grid):
            for axis, label in row.items():
                if axis not in grid:
                    raise ValueError(f"{axis} is no axis of the table (allowed: {', '.join(grid)})")
                if label not in grid[axis]:
                    raise ValueError(f"{axis}={label} is not among {', '.join(grid[axis])}")
            if absent := [axis for axis in grid if axis not in row]:
                raise ValueError(f"row {row} leaves {absent[0]} open: name one of {', '.join(grid[absent[0]])}")


class Greater(_Claim):
    """The metric of row is greater than that of another row, or than a number."""

    check: Literal["greater"]
    row: Labels
    than: Labels | float

    def rows(self, grid: Grid) -> list[Labels]:
        """The two rows, or the one."""
        return [self.row, self.than] if isinstance(self.than, dict) else [self.row]


class Within(_Claim):
    """The metrics of two rows differ by less than a margin."""

    check: Literal["within"]
    row: Labels
    of: Labels
    margin: float = Field(gt=0)

    def rows(self, grid: Grid) -> list[Labels]:
        """The two rows."""
        return [self.row, self.of]


class Ordered(_Claim):
    """Each row's metric is greater than that of the row after it."""

    check: Literal["ordered"]
    order: tuple[Labels, ...] = Field(min_length=2)

    def rows(self, grid: Grid) -> list[Labels]:
        """The rows, best first."""
        return list(self.order)


class AtChance(_Claim):
    """An accuracy over two labels is that of guessing."""

    check: Literal["at-chance"]
    row: Labels

    def rows(self, grid: Grid) -> list[Labels]:
        """The one row."""
        return [self.row]


class Ratio(_Claim):
    """The metric of one row is a multiple of another's, between two bounds; null is no bound."""

    check: Literal["ratio"]
    row: Labels
    to: Labels
    low: float | None = Field(default=None, gt=0)
    high: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _bounded(self) -> "Ratio":
        if self.low is None and self.high is None:
            raise ValueError("a ratio needs low, high or both")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low={self.low:g} is not below high={self.high:g}")
        return self

    def rows(self, grid: Grid) -> list[Labels]:
        """The two rows."""
        return [self.row, self.to]


class _AlongAxis(_Claim):
    axis: str
    where: Labels = Field(default_factory=dict)

    def rows(self, grid: Grid) -> list[Labels]:
        """A row for each label of the axis, smallest number first; the other axes are held where the claim says."""
        return [self.where | {self.axis: label} for label in sorted(grid.get(self.axis, ()), key=_number)]

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """As for every claim; besides, the axis is there, varies, and is not held."""
        if self.axis not in grid:
            raise ValueError(f"{self.axis} is no axis of the table (allowed: {', '.join(grid)})")
        if self.axis in self.where:
            raise ValueError(f"where holds {self.axis}, along which the claim goes")
        if len(grid[self.axis]) < 2:
            raise ValueError(f"{self.axis} has a single value: nothing to compare")
        super().fit(grid, metrics)


class Monotone(_AlongAxis):
    """The metric rises, or falls, along an axis of numbers."""

    check: Literal["monotone"]
    direction: Literal["rising", "falling"]

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """As for every claim along an axis; besides, its labels are numbers."""
        super().fit(grid, metrics)
        if words := [label for label in grid[self.axis] if math.isinf(_number(label))]:
            raise ValueError(f"{self.axis}={words[0]} is no number, so nothing rises along it: use ordered")


class PeakAt(_AlongAxis):
    """The metric is greater at one label of an axis than at every other."""

    check: Literal["peak-at"]
    at: str

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """As for every claim along an axis; besides, the peak is one of its labels."""
        super().fit(grid, metrics)
        if self.at not in grid[self.axis]:
            raise ValueError(f"at={self.at} is not among {', '.join(grid[self.axis])}")


Claim = Annotated[
    Greater | Within | Ordered | AtChance | Ratio | Monotone | PeakAt,
    Field(discriminator="check"),
]


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return math.inf  # words come last, in the order of the grid
