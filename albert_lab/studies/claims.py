"""Claims: sentences that a table of runs can confirm or refute, each by one of six checks.

A check is a class here, listed in CHECKS; own code can add others. How a claim is worded is no
matter of this module (report/wording.py).
"""

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError, model_validator

from albert_lab.config.section import default
from albert_lab.files import Record, check_distinct, check_known, describe

Labels = dict[str, str]
Grid = Mapping[str, Collection[str]]

CHANCE = (45.0, 55.0)  # percent of two equally frequent labels
LONGEST_SHORT = 45  # characters: a line of a terminal also has verdicts and a number
# What the paper calls the axes.
AXIS_NAMES = {
    "budget.value": "budget",
    "embedding_size": "E",
    "inter_sentence": "loss",
    "model.hidden_size": "H",
    "model.num_layers": "layers",
}


def axis_name(axis: str) -> str:
    """An axis as tables and pictures call it: E, H, or the last part of its key."""
    return AXIS_NAMES.get(axis, axis.rpartition(".")[2])


class Kind(Enum):
    """What decides a claim: a loss or score on held-out text, fine-tuned tasks, or another number
    of runs.
    """

    LOSS = "loss"
    TASKS = "tasks"
    NUMBER = "number"


@dataclass(frozen=True)
class Comparison:
    """A weighted sum of row means that is strictly between two bounds if the claim is true.

    A comparison that is not required can contradict the claim but not support it. With is_log, the
    means are those of logarithms, and the bounds are logarithms.
    """

    weights: tuple[tuple[float, Labels], ...]
    low: float = -math.inf
    high: float = math.inf
    is_required: bool = True
    is_log: bool = False

    @property
    def is_slope(self) -> bool:
        return any(abs(weight) != 1 for weight, _ in self.weights)


class By(Record):
    """What a sentence on performance is asked of, so that it has two verdicts.

    loss is a loss, or a pair score, on held-out text. tasks are fine-tuned tasks in order: the
    verdict is by the first of them that was measured and counts.
    """

    loss: str | None = None
    tasks: tuple[str, ...] = ()


class BaseClaim(Record):
    """The fields of every claim: the sentence, its section of a paper, and what it is about.

    Either `metric` names a column of the table of runs, or `by` has those by which a claim on
    performance is decided; then a row is above another if it is better, which it is by a smaller
    loss. Bounds and margins of scores are in points (percent), as the paper prints them; of other
    columns in their own unit.

    short is the sentence for a line of a terminal or of a figure. needs has the least values of
    settings, by key, at which the sentence is about these runs, as 24 layers. at_scale names a
    scale whose configurations alone decide, as they do numbers of parameters: nothing is trained
    for it. A row whose score is of a linear probe is compared with the probes of other rows, unless
    equal_terms is false.
    """

    quote: str = Field(min_length=1)
    short: Annotated[str, Field(min_length=1, max_length=LONGEST_SHORT)] | None = default(None)
    section: str | None = Field(default=None, min_length=1)
    metric: str | None = default(None)
    by: By | None = default(None)
    needs: dict[str, float] = default({})
    at_scale: str | None = default(None)
    equal_terms: bool = default(True)
    check: str

    @model_validator(mode="after")
    def _of_something(self) -> "BaseClaim":
        if bool(self.metric) == bool(self.by):
            raise ValueError("needs one of metric (a column) and by (loss, tasks)")
        if self.at_scale and self.metric != "parameters":
            raise ValueError("at_scale: without a run, metric: parameters alone is known")
        return self

    @property
    def metrics(self) -> list[str]:
        """All metrics that may decide it."""
        if self.by is None:
            return [str(self.metric)]
        return [*filter(None, [self.by.loss]), *self.by.tasks]

    def rows(self, grid: Grid) -> list[Labels]:
        """The rows that the claim is about, by the paper's labels of the axes."""
        return [labels for item in self.comparisons(grid) for _, labels in item.weights]

    @abstractmethod
    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The comparisons that decide the claim, of a score: it is true if all required ones are
        true.
        """

    def comparisons_of(self, metric: str, grid: Grid) -> list[Comparison]:
        """Its comparisons of one of its metrics: of a loss, where less is better, with the other
        signs.
        """
        comparisons = self.comparisons(grid)
        if self.by and is_loss(metric):
            return [_reversed(item) for item in comparisons]
        return comparisons

    @property
    def level(self) -> float | None:
        """The number that a row must exceed to show more than chance, for a claim about one row;
        else None.
        """
        return None

    def fit(self, grid: Grid, metrics: Collection[str]) -> None:
        """Check that the table has the metric, axes and labels that the claim names.

        Raises:
            ValueError: an unknown metric, axis or label; names it and the allowed ones.
        """
        for metric in self.metrics:
            check_known("metric" if self.metric else "by", metric, metrics)
        comparisons = self.comparisons(grid)
        for row in BaseClaim.rows(self, grid):  # with the peak, which may be no label
            if row.keys() != grid.keys():
                raise ValueError(
                    f"row {row}: needs a label of each axis, of no other: {', '.join(grid)}"
                )
            for axis, label in row.items():
                check_known(axis, label, grid[axis])
        for item in comparisons:
            added = [row for weight, row in item.weights if weight > 0]
            if any(weight < 0 and row in added for weight, row in item.weights):
                raise ValueError("it compares a row with itself: name two rows")


Effect = Labels | tuple[Labels, Labels]  # the level of a row, or the first row minus the second


def _rows(effect: Effect | float) -> tuple[Labels, ...]:
    """The one or two rows of an effect; none of a number."""
    if isinstance(effect, tuple):
        return effect
    return (effect,) if isinstance(effect, dict) else ()


class Greater(BaseClaim):
    """The metric of row is greater than that of another row, or than a number.

    If row and than have two rows each, the first difference is greater than the second: an
    interaction.
    """

    row: Effect
    than: Effect | float

    @model_validator(mode="after")
    def _alike(self) -> "Greater":
        if isinstance(self.row, tuple) != isinstance(self.than, tuple):
            raise ValueError(
                "row and than: both need two rows, whose differences are compared, or neither"
            )
        return self

    def comparisons(self, grid: Grid) -> list[Comparison]:
        first = zip((1.0, -1.0), _rows(self.row), strict=False)
        second = zip((-1.0, 1.0), _rows(self.than), strict=False)
        return [Comparison((*first, *second), low=self.level or 0.0)]

    @property
    def level(self) -> float | None:
        return self.than if isinstance(self.than, float) else None


class Better(Greater):
    """A row performs better than another row; of two rows each, an effect is greater than another
    one.
    """

    @model_validator(mode="after")
    def _on_performance(self) -> "Better":
        if self.by is None or isinstance(self.than, float):
            raise ValueError(
                "needs by (loss, tasks), which say what better means, and rows; with a metric or a "
                "number, the check is greater"
            )
        return self


class Within(BaseClaim):
    """The metrics of two rows differ by less than a margin; loss_margin is that of `by` a loss.

    The difference is of row over the other one: below 0 if row is worse.
    """

    row: Labels
    of: Labels
    margin: float = Field(gt=0)
    loss_margin: float | None = Field(default=None, gt=0)

    def comparisons(self, grid: Grid) -> list[Comparison]:
        return [_difference(self.row, self.of, low=-self.margin, high=self.margin)]

    def comparisons_of(self, metric: str, grid: Grid) -> list[Comparison]:
        comparisons = super().comparisons_of(metric, grid)
        if self.loss_margin and is_loss(metric):
            margin = self.loss_margin
            return [replace(item, low=-margin, high=margin) for item in comparisons]
        return comparisons


class AtChance(BaseClaim):
    """An accuracy over two labels is at the level of chance; trained_for is a score that the row
    must have learnt.
    """

    row: Labels
    trained_for: str | None = None

    def comparisons(self, grid: Grid) -> list[Comparison]:
        return [Comparison(((1.0, self.row),), *CHANCE)]

    def fit(self, grid: Grid, metrics: Collection[str]) -> None:
        super().fit(grid, metrics)
        if any(is_loss(metric) or metric == "mlm_accuracy" for metric in self.metrics):
            raise ValueError("it is about an accuracy over two labels")
        check_known("trained_for", self.trained_for or self.metrics[0], metrics)

    @property
    def level(self) -> float | None:
        return CHANCE[1]


class Ratio(BaseClaim):
    """The ratio of the metrics of two rows is between two bounds; null means no bound."""

    row: Labels
    to: Labels
    low: float | None = Field(default=None, gt=0)
    high: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _bounded(self) -> "Ratio":
        if not (self.low or 0.0) < (self.high or math.inf) or self.low == self.high:
            raise ValueError(
                f"low={self.low} and high={self.high}: a ratio needs one of them, or low below high"
            )
        return self

    def comparisons(self, grid: Grid) -> list[Comparison]:
        low = math.log(self.low) if self.low else -math.inf
        high = math.log(self.high) if self.high else math.inf
        return [Comparison(((1.0, self.row), (-1.0, self.to)), low, high, is_log=True)]


class Ordered(BaseClaim):
    """Each row's metric is greater than that of the next: of the rows in order, or along an axis.

    Along an axis of numbers it has a direction: rising or falling by the least-squares slope over
    the ranks of the rows, which no step may contradict. Or it is greater at the label peak than at
    every other. where fixes other axes.
    """

    order: tuple[Labels, ...] = ()
    axis: str | None = None
    direction: Literal["rising", "falling"] | None = None
    peak: str | None = None
    where: Labels = Field(default={})

    @model_validator(mode="after")
    def _of_one_form(self) -> "Ordered":
        given = [key for key in ("order", "axis", "direction", "peak") if getattr(self, key)]
        forms = (["order"], ["axis", "direction"], ["axis", "peak"])
        if given not in forms or len(self.order) == 1 or self.axis in self.where:
            raise ValueError(
                "needs order (two rows or more), or an axis with direction (rising or falling) or "
                "with peak (a label), and where only for other axes"
            )
        return self

    def rows(self, grid: Grid) -> list[Labels]:
        """The rows in order; those along an axis with the smallest number first."""
        if self.axis is None:
            return list(self.order)
        labels = sorted(grid.get(self.axis, ()), key=lambda label: number_in(label) or 0.0)
        return [self.where | {self.axis: label} for label in labels]

    def fit(self, grid: Grid, metrics: Collection[str]) -> None:
        if self.axis:
            check_known("axis", self.axis, grid)
            words = [label for label in grid[self.axis] if number_in(label) is None]
            if len(grid[self.axis]) < 2 or (self.direction and words):
                raise ValueError(
                    f"axis={self.axis} needs two labels, numbers for a direction; name rows with "
                    "order, or the highest with peak"
                )
        super().fit(grid, metrics)
        check_distinct([tuple(sorted(row.items())) for row in self.order])

    def comparisons(self, grid: Grid) -> list[Comparison]:
        """The peak against each other row, or each row against the next lower one: all must be
        above 0. With a direction and three rows or more, the slope must be, and a step can only
        contradict.
        """
        rows = self.rows(grid)
        if self.axis and self.peak:
            best = self.where | {self.axis: self.peak}
            return [_difference(best, row) for row in rows if row != best]
        highest_first = rows[::-1] if self.direction == "rising" else rows
        steps = [_difference(better, worse) for better, worse in pairwise(highest_first)]
        if self.direction is None or len(rows) == 2:
            return steps
        middle = (len(rows) - 1) / 2
        scale = sum((place - middle) ** 2 for place in range(len(rows)))
        rising = enumerate(reversed(highest_first))
        slope = tuple(((place - middle) / scale, row) for place, row in rising)
        # From the lowest step on, as the rows of the slope.
        contradicting = [replace(step, is_required=False) for step in reversed(steps)]
        return [Comparison(slope, low=0.0), *contradicting]


CHECKS: dict[str, type[BaseClaim]] = {
    "greater": Greater,
    "better": Better,
    "ordered": Ordered,
    "within": Within,
    "at-chance": AtChance,
    "ratio": Ratio,
}


def _parsed(content: Any) -> Any:
    """The claim of plain data, in the class of its check."""
    if not isinstance(content, Mapping):
        return content
    check_known("check", str(content.get("check")), CHECKS)
    try:
        return CHECKS[str(content["check"])].model_validate(content)
    except ValidationError as error:
        raise ValueError("; ".join(map(describe, error.errors()))) from error


Claim = Annotated[SerializeAsAny[BaseClaim], BeforeValidator(_parsed)]


def number_in(text: str) -> float | None:
    """The number that a text is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def _difference(row: Labels, other: Labels, low: float = 0.0, high: float = math.inf):
    """The comparison of the first row minus the other; that the first is greater, by default."""
    return Comparison(((1.0, row), (-1.0, other)), low, high)


def _reversed(item: Comparison) -> Comparison:
    # What is added stands first, also where the sign of all weights changed.
    weights = [(-weight, labels) for weight, labels in item.weights]
    weights.sort(key=lambda weight: weight[0] < 0)
    return replace(item, weights=tuple(weights))


def is_loss(metric: str) -> bool:
    return metric.endswith("_loss")
