"""The accuracies of each row in the two sentence tasks, in one sentence per row."""

from collections.abc import Sequence
from statistics import fmean

from albert_lab.report.markdown import decimal
from albert_lab.report.table_scores import TableScores
from albert_lab.score import BAGS, exceeds, wilson
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Column, Row, intrinsic_columns, named_labels


def learnt(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> list[str]:
    """One sentence per row on its pair accuracies, each with its floors; empty if the study has no such accuracy."""
    columns = [column for column in intrinsic_columns(experiment) if column.key != "mlm_accuracy"]
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
    lexical = max((score.lexical_floor for score in found if score.lexical_floor is not None), default=None)
    place = "above chance" if low > floor else "below chance" if high < floor else "at chance"
    if low > floor and lexical is not None:
        is_above = exceeds(mean, low, lexical, n)
        place += f", {'above' if is_above else 'not above'} {BAGS} ({decimal(lexical)} %)"
    return f"{column.heading} {decimal(mean)} % [{decimal(low)}, {decimal(high)}], {place}"


def _interval(scores: TableScores, row: Row, column: str, n: int) -> tuple[float, float]:
    """The 95 % interval of a row's mean: that of the verdicts, but at least as wide as Wilson's over n answers.

    All seeds answer the same questions, so seeds that agree do not increase their number.
    """
    found = scores.estimate([(1.0, row)], column)
    low, high = wilson(found.value / 100 * n, n)
    if found.interval:
        low, high = min(low, found.interval[0]), max(high, found.interval[1])
    return max(0.0, low), min(100.0, high)
