"""Claims: sentences of the paper that a table of runs can confirm or refute, and the interface of their checks."""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pydantic import Field

from albert_lab.record import Record

Labels = dict[str, str]
Name = Callable[[Labels], str]  # the words for a row, or for labels that rows have in common
Grid = Mapping[str, Collection[str]]

# What the paper calls the axes.
AXIS_NAMES = {
    "budget.value": "budget",
    "embedding_size": "E",
    "inter_sentence": "loss",
    "model.hidden_size": "H",
    "model.num_layers": "layers",
}


@dataclass(frozen=True)
class Comparison:
    """A weighted sum of row means that is strictly between two bounds if the claim is true.

    A comparison that is not required can contradict the claim but not support it. With is_log, the means are those of
    logarithms, and the bounds are logarithms. One of more than two rows has a title, or
    compares the effects of a setting at two places.
    """

    weights: tuple[tuple[float, Labels], ...]
    low: float = -math.inf
    high: float = math.inf
    is_required: bool = True
    is_log: bool = False
    title: str = ""
    effects_at: tuple[Labels, ...] = ()

    @property
    def has_two_bounds(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def words(self, name: Name) -> str:
        """Its title; else the compared row, or two rows or effects by the labels in which they differ."""
        rows = [labels for _, labels in self.weights]
        if self.title:
            return self.title
        if self.effects_at:
            return " − ".join(f"effect at {place}" for place in distinct(self.effects_at, name))
        return (" / " if self.is_log else " − ").join(distinct(rows, name)) if len(rows) == 2 else name(rows[0])


class BaseClaim(Record):
    """The fields of every claim: the sentence, its section of a paper, and the column of the table of runs.

    Bounds and margins of scores are in points (percent), as the paper prints them; of other columns in their own unit.
    """

    quote: str = Field(min_length=1)
    section: str | None = Field(default=None, min_length=1)
    metric: str
    check: str

    @abstractmethod
    def rows(self, grid: Grid) -> list[Labels]:
        """The rows that the claim is about, by the paper's labels of the axes."""

    @abstractmethod
    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The comparisons that decide the claim: it is true if all required ones are true."""

    def comparisons_among(self, grid: Grid, kept: Collection[Labels]) -> list[Comparison]:
        """The comparisons that need only some of the rows; empty if these rows say nothing on the claim."""
        return [
            comparison
            for comparison in self.comparisons(grid)
            if all(labels in kept for _, labels in comparison.weights)
        ]

    @abstractmethod
    def words(self, unit: str, name: Name) -> str:
        """The check in words; unit is that of a difference, such as points, and name gives a row as tables do."""

    @property
    def level(self) -> float | None:
        """The number that a row must exceed to show more than chance, for a claim about one row; else None."""
        return None

    @property
    def is_of_order(self) -> bool:
        """Whether the claim names no number, so that it can be checked on another measure of the same rows."""
        return True

    def fit(self, grid: Grid, metrics: Iterable[str], percent: Collection[str] = ()) -> None:
        """Check that the table has the metric, axes and labels that the claim names, and that it can be true or false.

        Args:
            percent: those that are scores in percent.

        Raises:
            ValueError: an unknown metric, axis or label; names it and the allowed ones. A row that is compared with
                itself, or a bound that no score in percent reaches.
        """
        check_metric("metric", self.metric, sorted(metrics))
        rows = self.rows(grid)
        if again := next((row for number, row in enumerate(rows) if row in rows[:number]), None):
            raise ValueError(f"row {again} is compared with itself")
        for row in rows:
            for axis, label in row.items():
                if axis not in grid:
                    raise ValueError(f"{axis} is no axis of the table (allowed: {', '.join(grid)})")
                if label not in grid[axis]:
                    raise ValueError(f"{axis}={label} is not among {', '.join(grid[axis])}")
            if absent := [axis for axis in grid if axis not in row]:
                raise ValueError(f"row {row} leaves {absent[0]} open: name one of {', '.join(grid[absent[0]])}")
        if self.metric in percent:
            bounds = [bound for item in self.comparisons(grid) if not item.is_log for bound in (item.low, item.high)]
            if beyond := [bound for bound in bounds if math.isfinite(bound) and abs(bound) > 100]:
                raise ValueError(f"{self.metric} is in percent, which never reaches {beyond[0]:g}")


def distinct(rows: Sequence[Labels], name: Name) -> list[str]:
    """Each row by the labels in which they differ."""
    same = _same(rows)
    return [name({axis: label for axis, label in row.items() if axis not in same}) for row in rows]


def is_bare(label: str) -> bool:
    """Whether a label says nothing without the name of its axis: a number, true or false."""
    return label in ("true", "false") or number_in(label) is not None


def number_in(text: str) -> float | None:
    """The number that a text is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def shared(rows: Sequence[Labels], name: Name) -> str:
    """The labels that rows have in common, as the end of a sentence; empty if there are none."""
    words = name(_same(rows))
    return f", at {words}" if words else ""


def _same(rows: Sequence[Labels]) -> Labels:
    return {axis: label for axis, label in rows[0].items() if all(row.get(axis) == label for row in rows)}


def difference(
    row: Labels, other: Labels, *, low: float, high: float = math.inf, is_required: bool = True
) -> Comparison:
    """The difference of two rows: row minus other."""
    return Comparison(((1.0, row), (-1.0, other)), low, high, is_required)


def check_metric(key: str, metric: str, known: Sequence[str]) -> None:
    """Raise ValueError unless the metric of a key is a column of the table of runs."""
    if metric not in known:
        near = get_close_matches(metric, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(known)}"
        raise ValueError(f"{key}={metric} is no column of the table of runs ({hint})")
