"""The checks of claims, one class each. A new check is one class here, listed in CHECKS; own code can add others."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError, model_validator

from albert_lab.files import describe, details_of
from albert_lab.registry import Registry
from albert_lab.studies.claim import (
    AXIS_NAMES,
    BaseClaim,
    Comparison,
    Grid,
    Labels,
    Name,
    check_metric,
    difference,
    distinct,
    number_in,
    shared,
)

CHANCE = (45.0, 55.0)  # percent of two equally frequent labels


def _as_adjective(direction: Any) -> Any:
    return {"rises": "rising", "falls": "falling"}.get(str(direction), direction)


class Greater(BaseClaim):
    """The metric of row is greater than that of another row, or than a number."""

    row: Labels
    than: Labels | float

    def rows(self, grid: Grid) -> list[Labels]:
        return [self.row, self.than] if isinstance(self.than, dict) else [self.row]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        if isinstance(self.than, dict):
            return [difference(self.row, self.than, low=0.0)]
        return [Comparison(((1.0, self.row),), low=self.than)]

    def words(self, unit: str, name: Name) -> str:
        if isinstance(self.than, dict):
            return " above ".join(distinct([self.row, self.than], name)) + shared([self.row, self.than], name)
        return f"{name(self.row)} above {self.than:g}" + (" %" if unit == "points" else "")

    @property
    def level(self) -> float | None:
        return None if isinstance(self.than, dict) else self.than

    @property
    def is_of_order(self) -> bool:
        return isinstance(self.than, dict)


class Within(BaseClaim):
    """The metrics of two rows differ by less than a margin."""

    row: Labels
    of: Labels
    margin: float = Field(gt=0)

    def rows(self, grid: Grid) -> list[Labels]:
        return [self.row, self.of]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        return [difference(self.row, self.of, low=-self.margin, high=self.margin)]

    def words(self, unit: str, name: Name) -> str:
        first, second = distinct([self.row, self.of], name)
        measured = unit.replace("points", "point") if self.margin == 1 else unit
        return f"{first} within {self.margin:g} {measured} of {second}" + shared([self.row, self.of], name)

    @property
    def is_of_order(self) -> bool:
        return False


class Ordered(BaseClaim):
    """Each row's metric is greater than that of the row after it."""

    order: tuple[Labels, ...] = Field(min_length=2)

    def rows(self, grid: Grid) -> list[Labels]:
        return list(self.order)

    def comparisons(self, grid: Grid) -> list[Comparison]:
        return self.comparisons_among(grid, self.order)

    def comparisons_among(self, grid: Grid, kept: Collection[Labels]) -> list[Comparison]:
        order = [labels for labels in self.order if labels in kept]
        return [difference(better, worse, low=0.0) for better, worse in pairwise(order)]

    def words(self, unit: str, name: Name) -> str:
        return " above ".join(distinct(self.order, name)) + shared(self.order, name)


class AtChance(BaseClaim):
    """An accuracy over two labels is at the level of chance; trained_for is a score that the row must have learnt."""

    row: Labels
    trained_for: str | None = None

    def rows(self, grid: Grid) -> list[Labels]:
        return [self.row]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        return [Comparison(((1.0, self.row),), *CHANCE)]

    def words(self, unit: str, name: Name) -> str:
        return f"{name(self.row)} within {CHANCE[0]:g} to {CHANCE[1]:g} %"

    def fit(self, grid: Grid, metrics: Iterable[str], percent: Collection[str] = ()) -> None:
        known = sorted(metrics)
        super().fit(grid, known, percent)
        if self.trained_for is not None:
            check_metric("trained_for", self.trained_for, known)

    @property
    def level(self) -> float | None:
        return CHANCE[1]

    @property
    def is_of_order(self) -> bool:
        return False


class Ratio(BaseClaim):
    """The ratio of the metrics of two rows is between two bounds; null means no bound."""

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
        return [self.row, self.to]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        low = -math.inf if self.low is None else math.log(self.low)
        high = math.inf if self.high is None else math.log(self.high)
        return [Comparison(((1.0, self.row), (-1.0, self.to)), low, high, is_log=True)]

    def words(self, unit: str, name: Name) -> str:
        first, second = distinct([self.row, self.to], name)
        return f"{first} {self._bounds} times {second}" + shared([self.row, self.to], name)

    @property
    def _bounds(self) -> str:
        if self.low is None:
            return f"below {self.high:g}"
        return f"above {self.low:g}" if self.high is None else f"{self.low:g} to {self.high:g}"

    @property
    def is_of_order(self) -> bool:
        return False


class _AlongAxis(BaseClaim):
    axis: str
    where: Labels = Field(default_factory=dict)

    def rows(self, grid: Grid) -> list[Labels]:
        """A row for each label of the axis, smallest number first; the claim fixes the other axes."""
        return [self.where | {self.axis: label} for label in sorted(grid.get(self.axis, ()), key=_number)]

    def comparisons_among(self, grid: Grid, kept: Collection[Labels]) -> list[Comparison]:
        labels = [label for label in grid[self.axis] if self.where | {self.axis: label} in kept]
        return self.comparisons({**grid, self.axis: labels}) if len(labels) > 1 else []

    def fit(self, grid: Grid, metrics: Iterable[str], percent: Collection[str] = ()) -> None:
        if self.axis not in grid:
            raise ValueError(f"{self.axis} is no axis of the table (allowed: {', '.join(grid)})")
        if self.axis in self.where:
            raise ValueError(f"where fixes {self.axis}, which is the axis of the claim")
        if len(grid[self.axis]) < 2:
            raise ValueError(f"{self.axis} has a single value: nothing to compare")
        super().fit(grid, metrics, percent)

    def _at(self, name: Name) -> str:
        return f", at {name(self.where)}" if self.where else ""


class Monotone(_AlongAxis):
    """The metric rises, or falls, along an axis of numbers."""

    direction: Annotated[Literal["rising", "falling"], BeforeValidator(_as_adjective)]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The least-squares slope over the ranks of the rows; with more than two rows, each step can contradict."""
        rows = self.rows(grid)
        rising = rows if self.direction == "rising" else rows[::-1]
        middle = (len(rows) - 1) / 2
        scale = sum((place - middle) ** 2 for place in range(len(rows)))
        weights = tuple(((place - middle) / scale, row) for place, row in enumerate(rising))
        slope = Comparison(weights, low=0.0, title="slope per step")
        if len(rows) == 2:
            return [difference(rising[1], rising[0], low=0.0)]
        return [slope, *(difference(after, before, low=0.0, is_required=False) for before, after in pairwise(rising))]

    def words(self, unit: str, name: Name) -> str:
        return f"{self.direction} with {AXIS_NAMES.get(self.axis, self.axis)}{self._at(name)}"

    def fit(self, grid: Grid, metrics: Iterable[str], percent: Collection[str] = ()) -> None:
        super().fit(grid, metrics, percent)
        if words := [label for label in grid[self.axis] if math.isinf(_number(label))]:
            raise ValueError(f"{self.axis}={words[0]} is no number, so nothing rises along it: use ordered")


class PeakAt(_AlongAxis):
    """The metric is greater at one label of an axis than at every other."""

    at: str

    def comparisons(self, grid: Grid) -> list[Comparison]:
        peak = self.where | {self.axis: self.at}
        return [difference(peak, row, low=0.0) for row in self.rows(grid) if row != peak]

    def comparisons_among(self, grid: Grid, kept: Collection[Labels]) -> list[Comparison]:
        return super().comparisons_among(grid, kept) if self.where | {self.axis: self.at} in kept else []

    def words(self, unit: str, name: Name) -> str:
        return f"highest at {name({self.axis: self.at})}{self._at(name)}"

    def fit(self, grid: Grid, metrics: Iterable[str], percent: Collection[str] = ()) -> None:
        super().fit(grid, metrics, percent)
        if self.at not in grid[self.axis]:
            raise ValueError(f"at={self.at} is not among {', '.join(grid[self.axis])}")


class Interaction(BaseClaim):
    """The effect of one setting depends on another: row exceeds than by less under one label than elsewhere.

    row and than differ in the setting, under and elsewhere in the other one. The effect has a sign: if row is the worse
    one elsewhere, a claim that the setting matters less under the label has row and than exchanged.
    """

    row: Labels
    than: Labels
    under: Labels
    elsewhere: Labels

    @model_validator(mode="after")
    def _crossed(self) -> "Interaction":
        for one, other in (("row", "than"), ("under", "elsewhere")):
            if getattr(self, one).keys() != getattr(self, other).keys():
                raise ValueError(f"{one} and {other} name different axes")
        if both := self.row.keys() & self.under.keys():
            raise ValueError(f"row and under both name {', '.join(sorted(both))}")
        return self

    def rows(self, grid: Grid) -> list[Labels]:
        return [row | place for place in (self.elsewhere, self.under) for row in (self.row, self.than)]

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The difference of the two effects, seed by seed: that elsewhere minus that under the label."""
        weights = zip((1.0, -1.0, -1.0, 1.0), self.rows(grid), strict=True)
        return [Comparison(tuple(weights), low=0.0, effects_at=(self.elsewhere, self.under))]

    def words(self, unit: str, name: Name) -> str:
        row, than = distinct([self.row, self.than], name)
        under, elsewhere = name(self.under), name(self.elsewhere)
        return f"{row} above {than} by less at {under} than at {elsewhere}" + shared([self.row, self.than], name)


CHECKS: Registry[type[BaseClaim]] = Registry(
    "check",
    {
        "greater": Greater,
        "within": Within,
        "ordered": Ordered,
        "at-chance": AtChance,
        "ratio": Ratio,
        "monotone": Monotone,
        "peak-at": PeakAt,
        "interaction": Interaction,
    },
)


def check(name: str) -> Callable[[type[BaseClaim]], type[BaseClaim]]:
    """Register a subclass of BaseClaim for `check: NAME` in a claim."""
    return CHECKS.decorator(name)


def _parsed(content: Any) -> Any:
    """The claim of plain data, in the class of its check."""
    if not isinstance(content, Mapping):
        return content
    if "check" not in content:
        raise ValueError(f"check is missing (allowed: {', '.join(CHECKS)})")
    try:
        return CHECKS[str(content["check"])].model_validate(content)
    except ValidationError as error:
        raise ValueError("; ".join(map(describe, details_of(error)))) from error


Claim = Annotated[SerializeAsAny[BaseClaim], BeforeValidator(_parsed)]


def _number(label: str) -> float:
    number = number_in(label)
    return math.inf if number is None else number  # labels that are not numbers come last, in the order of the grid
