"""The accuracies of each row in the two sentence tasks, in one sentence per row."""

from collections.abc import Sequence
from statistics import fmean

from albert_lab.measures.catalog import of_kind, units
from albert_lab.measures.measure import TokenMeasure
from albert_lab.report.markdown import decimal
from albert_lab.report.table_scores import TableScores
from albert_lab.score import CHANCE, exceeds, wilson
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Column, Row, intrinsic_columns, named_labels


def learnt(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> list[str]:
    """One sentence per row on its pair measures, each with its floors; empty if the study has none."""
    tokens = [measure.name for measure in of_kind(TokenMeasure)]
    columns = [column for column in intrinsic_columns(experiment) if column.key not in tokens]
    scores = TableScores(table)
    sentences = []
    for row in table:
        if found := [_score(scores, row, column) for column in columns if row.having(column.key)]:
            name = ", ".join(named_labels(experiment, row, axes))
            sentences.append(f"{name + ' row: ' if name else ''}{'; '.join(found)}.")
    return sentences


def _score(scores: TableScores, row: Row, column: Column) -> str:
    found = [run.scores[column.key] for run in row.having(column.key)]
    mean, n = fmean(score.value for score in found), found[0].n
    low, high = _interval(scores, row, column.key, n)
    floor = max(score.floor for score in found)
    chance = CHANCE if column.unit == "%" else "zero"
    place = f"above {chance}" if low > floor else f"below {chance}" if high < floor else f"at {chance}"
    for second in found[0].floors.keys() - {CHANCE} if low > floor and column.unit == "%" else ():
        bound = max(score.floors.get(second, score.floor) for score in found)
        place += f", {'above' if exceeds(mean, low, bound, n) else 'not above'} {second} ({decimal(bound)} %)"
    return f"{column.heading} {decimal(mean)} {column.unit} [{decimal(low)}, {decimal(high)}], {place}"


def _interval(scores: TableScores, row: Row, column: str, n: int) -> tuple[float, float]:
    """The 95 % interval of a row's mean: that of the verdicts, but at least as wide as Wilson's over n answers.

    All seeds answer the same questions, so seeds that agree do not increase their number.
    """
    found = scores.estimate([(1.0, row)], column)
    if units()[column] == "points":
        (single, *_) = [run.scores[column] for run in row.having(column)]
        return found.interval or (single.low or found.value, single.high or found.value)
    low, high = wilson(found.value / 100 * n, n)
    if found.interval:
        low, high = min(low, found.interval[0]), max(high, found.interval[1])
    return max(0.0, low), min(100.0, high)
