"""What each row learnt of the pair measures, next to their floors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from albert_lab.analysis.table_scores import OVER_SEGMENTS, TableScores
from albert_lab.measures.catalog import of_kind
from albert_lab.measures.measure import TokenMeasure
from albert_lab.score import BAGS, CHANCE, Floor, exceeds
from albert_lab.studies.claims import CHANCE as CHANCE_LIMITS
from albert_lab.studies.table import Column, Row


@dataclass(frozen=True)
class FurtherFloor:
    """A floor other than chance, its score in the unit of the measure, and whether a row is above it."""

    floor: Floor
    bound: float
    is_below: bool


@dataclass(frozen=True)
class Learnt:
    """The mean of a row in one pair measure, in the measure's unit, with its 95 % interval over seeds and answers.

    Attributes:
        place: where the whole interval is: above, at or below chance by the limits of the check `at-chance`, or across
            one of these limits; for a measure in points, above or below zero, or across it.
        floors: the other floors of a score above chance.
    """

    row: Row
    column: Column
    mean: float
    low: float
    high: float
    place: Literal["above", "at", "below", "across"]
    floors: tuple[FurtherFloor, ...] = ()


def learnt(columns: Sequence[Column], scores: TableScores) -> list[Learnt]:
    """What each row of a table learnt of each pair measure; nothing for a row without the score."""
    of_tokens = [measure.name for measure in of_kind(TokenMeasure)]
    of_pairs = [column for column in columns if column.key not in of_tokens]
    return [_of(scores, row, column) for row in scores.table for column in of_pairs if row.having(column.key)]


def _of(scores: TableScores, row: Row, column: Column) -> Learnt:
    of_row = [run.scores[column.key] for run in row.having(column.key)]
    mean, n = fmean(score.value for score in of_row), of_row[0].n
    low, high = scores.interval(row, column.key) or (mean, mean)
    limits = CHANCE_LIMITS if column.unit == "%" else (0.0, 0.0)
    if low <= limits[1]:
        is_within = limits[0] < low and high < limits[1]
        return Learnt(row, column, mean, low, high, "below" if high < limits[0] else "at" if is_within else "across")
    floors = []
    for name in of_row[0].floors:
        if name != CHANCE:
            bound = max(score.floors.get(name, score.floor) for score in of_row)
            is_below = exceeds(mean, low, bound, n) if name == BAGS else _gain(scores, row, column.key) > 0
            floors.append(FurtherFloor(name, bound, is_below))
    return Learnt(row, column, mean, low, high, "above", tuple(floors))


def _gain(scores: TableScores, row: Row, column: str) -> float:
    """The lower end of the 95 % interval of a row's gain over each segment by itself in points, pair by pair."""
    interval = scores.estimate([(1.0, row)], f"{column}{OVER_SEGMENTS}").interval
    singles = [score.over_segments for run in row.having(column) if (score := run.scores[column]).over_segments]
    return interval[0] if interval else min((low for low, _ in singles), default=-math.inf)
