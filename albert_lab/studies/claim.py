"""Claims: sentences of the paper, each with a check that a table of runs can decide. A new check is one class here."""

import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Labels = dict[str, str]
Grid = Mapping[str, Collection[str]]
CHANCE = (45.0, 55.0)  # percent of two equally frequent labels


@dataclass(frozen=True)
class Comparison:
    """A weighted sum of row means that a claim says to be strictly between two bounds.

    One that is not required speaks against the claim where it lies outside, and never for it. With is_log, the means
    and the bounds are of logarithms.
    """

    weights: tuple[tuple[float, Labels], ...]
    low: float = -math.inf
    high: float = math.inf
    is_required: bool = True
    is_log: bool = False

    @property
    def words(self) -> str:
        """What is compared: a row, or two by the labels in which they differ."""
        rows = [labels for _, labels in self.weights]
        if len(rows) > 2:
            return "slope per step"
        return (" / " if self.is_log else " − ").join(distinct(rows)) if len(rows) == 2 else name(rows[0])


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

    @abstractmethod
    def comparisons(self, grid: Grid) -> list[Comparison]:
        """What the claim comes down to: it is true where all that are required are."""

    @abstractmethod
    def words(self, unit: str) -> str:
        """What is checked, in words; unit is that of a difference, such as points."""

    @property
    def level(self) -> float | None:
        """The number above which a row has to lie to show more than chance, for a claim on one row alone; else None."""
        return None

    @property
    def is_of_order(self) -> bool:
        """The claim names no number, so that it can be checked on another measure of the same rows."""
        return True

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """Check that the table can have what the claim names.

        Raises:
            ValueError: a metric, an axis or a label that is not there; names it and what is allowed.
        """
        _check_metric("metric", self.metric, sorted(metrics))
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

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The difference of the two rows, or the level of the one."""
        if isinstance(self.than, dict):
            return [_difference(self.row, self.than, low=0.0)]
        return [Comparison(((1.0, self.row),), low=self.than)]

    def words(self, unit: str) -> str:
        """The check in words."""
        if isinstance(self.than, dict):
            return " above ".join(distinct([self.row, self.than])) + _shared([self.row, self.than])
        return f"{name(self.row)} above {self.than:g}" + (" %" if unit == "points" else "")

    @property
    def level(self) -> float | None:
        """The number."""
        return None if isinstance(self.than, dict) else self.than

    @property
    def is_of_order(self) -> bool:
        """Between rows."""
        return isinstance(self.than, dict)


class Within(_Claim):
    """The metrics of two rows differ by less than a margin."""

    check: Literal["within"]
    row: Labels
    of: Labels
    margin: float = Field(gt=0)

    def rows(self, grid: Grid) -> list[Labels]:
        """The two rows."""
        return [self.row, self.of]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """Their difference."""
        return [_difference(self.row, self.of, low=-self.margin, high=self.margin)]

    def words(self, unit: str) -> str:
        """The check in words."""
        first, second = distinct([self.row, self.of])
        return f"{first} within {self.margin:g} {unit} of {second}" + _shared([self.row, self.of])

    @property
    def is_of_order(self) -> bool:
        """The margin is a number."""
        return False


class Ordered(_Claim):
    """Each row's metric is greater than that of the row after it."""

    check: Literal["ordered"]
    order: tuple[Labels, ...] = Field(min_length=2)

    def rows(self, grid: Grid) -> list[Labels]:
        """The rows, best first."""
        return list(self.order)

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The difference of each row and the next."""
        return [_difference(better, worse, low=0.0) for better, worse in pairwise(self.order)]

    def words(self, unit: str) -> str:
        """The check in words."""
        return " above ".join(distinct(self.order)) + _shared(self.order)


class AtChance(_Claim):
    """An accuracy over two labels is that of guessing; trained_for is the score that the row must have learnt."""

    check: Literal["at-chance"]
    row: Labels
    trained_for: str | None = None

    def rows(self, grid: Grid) -> list[Labels]:
        """The one row."""
        return [self.row]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """Its level."""
        return [Comparison(((1.0, self.row),), *CHANCE)]

    def words(self, unit: str) -> str:
        """The check in words."""
        return f"{name(self.row)} within {CHANCE[0]:g} to {CHANCE[1]:g} %"

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """As for every claim; besides, trained_for is a column too."""
        known = sorted(metrics)
        super().fit(grid, known)
        if self.trained_for is not None:
            _check_metric("trained_for", self.trained_for, known)

    @property
    def level(self) -> float | None:
        """Where chance ends."""
        return CHANCE[1]

    @property
    def is_of_order(self) -> bool:
        """Chance is a number."""
        return False


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

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The difference of their logarithms."""
        low = -math.inf if self.low is None else math.log(self.low)
        high = math.inf if self.high is None else math.log(self.high)
        return [Comparison(((1.0, self.row), (-1.0, self.to)), low, high, is_log=True)]

    def words(self, unit: str) -> str:
        """The check in words."""
        first, second = distinct([self.row, self.to])
        return f"{first} {self._bounds} times {second}" + _shared([self.row, self.to])

    @property
    def _bounds(self) -> str:
        if self.low is None:
            return f"below {self.high:g}"
        return f"above {self.low:g}" if self.high is None else f"{self.low:g} to {self.high:g}"

    @property
    def is_of_order(self) -> bool:
        """The bounds are numbers."""
        return False


class _AlongAxis(_Claim):
    axis: str
    where: Labels = Field(default_factory=dict)

    def rows(self, grid: Grid) -> list[Labels]:
        """A row for each label of the axis, smallest number first; the other axes are as the claim says."""
        return [self.where | {self.axis: label} for label in sorted(grid.get(self.axis, ()), key=_number)]

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """As for every claim; besides, the axis is there, varies, and is not fixed by the claim."""
        if self.axis not in grid:
            raise ValueError(f"{self.axis} is no axis of the table (allowed: {', '.join(grid)})")
        if self.axis in self.where:
            raise ValueError(f"where fixes {self.axis}, along which the claim goes")
        if len(grid[self.axis]) < 2:
            raise ValueError(f"{self.axis} has a single value: nothing to compare")
        super().fit(grid, metrics)

    @property
    def _at(self) -> str:
        return f", at {name(self.where)}" if self.where else ""


class Monotone(_AlongAxis):
    """The metric rises, or falls, along an axis of numbers."""

    check: Literal["monotone"]
    direction: Literal["rising", "falling"]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The slope of least squares over the ranks of the rows; each step of a longer axis may speak against it."""
        rows = self.rows(grid)
        rising = rows if self.direction == "rising" else rows[::-1]
        middle = (len(rows) - 1) / 2
        scale = sum((place - middle) ** 2 for place in range(len(rows)))
        slope = Comparison(tuple(((place - middle) / scale, row) for place, row in enumerate(rising)), low=0.0)
        if len(rows) == 2:
            return [_difference(rising[1], rising[0], low=0.0)]
        return [slope, *(_difference(after, before, low=0.0, is_required=False) for before, after in pairwise(rising))]

    def words(self, unit: str) -> str:
        """The check in words."""
        return f"{self.direction} with {self.axis}{self._at}"

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """As for every claim along an axis; besides, its labels are numbers."""
        super().fit(grid, metrics)
        if words := [label for label in grid[self.axis] if math.isinf(_number(label))]:
            raise ValueError(f"{self.axis}={words[0]} is no number, so nothing rises along it: use ordered")


class PeakAt(_AlongAxis):
    """The metric is greater at one label of an axis than at every other."""

    check: Literal["peak-at"]
    at: str

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The difference of the peak and every other row."""
        peak = self.where | {self.axis: self.at}
        return [_difference(peak, row, low=0.0) for row in self.rows(grid) if row != peak]

    def words(self, unit: str) -> str:
        """The check in words."""
        return f"highest at {self.axis}={self.at}{self._at}"

    def fit(self, grid: Grid, metrics: Iterable[str]) -> None:
        """As for every claim along an axis; besides, the peak is one of its labels."""
        super().fit(grid, metrics)
        if self.at not in grid[self.axis]:
            raise ValueError(f"at={self.at} is not among {', '.join(grid[self.axis])}")


Claim = Annotated[
    Greater | Within | Ordered | AtChance | Ratio | Monotone | PeakAt,
    Field(discriminator="check"),
]


def name(labels: Labels) -> str:
    """A row in one line: axis=label."""
    return " ".join(f"{axis}={label}" for axis, label in labels.items())


def distinct(rows: Sequence[Labels]) -> list[str]:
    """Each row by the labels in which they differ."""
    same = _same(rows)
    return ["/".join(label for axis, label in row.items() if axis not in same) for row in rows]


def _shared(rows: Sequence[Labels]) -> str:
    same = _same(rows)
    return f", at {name(same)}" if same else ""


def _same(rows: Sequence[Labels]) -> Labels:
    return {axis: label for axis, label in rows[0].items() if all(row.get(axis) == label for row in rows)}


def _difference(
    row: Labels, other: Labels, *, low: float, high: float = math.inf, is_required: bool = True
) -> Comparison:
    return Comparison(((1.0, row), (-1.0, other)), low, high, is_required)


def _check_metric(key: str, metric: str, known: Sequence[str]) -> None:
    if metric not in known:
        near = get_close_matches(metric, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(known)}"
        raise ValueError(f"{key}={metric} is no column of the table of runs ({hint})")


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return math.inf  # words come last, in the order of the grid
