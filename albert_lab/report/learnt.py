"""What each row of a table learnt of the two sentence tasks, in one sentence per row."""

import math
from collections.abc import Sequence
from statistics import fmean

from albert_lab.report.markdown import decimal
from albert_lab.score import NOT_ABOVE_BAGS, wilson
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Column, Row, Run, axis_labels, intrinsic_columns


def learnt(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> list[str]:
    """One sentence per row on its pair accuracies, each with its floors; none where a study has no such accuracy."""
    columns = [column for column in intrinsic_columns(experiment) if column.key != "mlm_accuracy"]
    sentences = []
    for row in table:
        if found := [_score(row, column) for column in columns if row.having(column.key)]:
            name = " ".join(axis_labels(experiment, row, axes))
            sentences.append(f"{name + ' row: ' if name else ''}{'; '.join(found)}.")
    return sentences


def _score(row: Row, column: Column) -> str:
    runs = row.having(column.key)
    values = [float(run[column.key]) for run in runs]
    low, high = _interval(values, int(runs[0][f"{column.key}_n"]))
    floor, lexical = (_highest(runs, f"{column.key}_{kind}") for kind in ("floor", "lexical_floor"))
    place = "above chance" if low > floor else "below chance" if high < floor else "at chance"
    if low > floor and not math.isnan(lexical):
        place += f", {'above bags of tokens' if low > lexical else NOT_ABOVE_BAGS} ({decimal(lexical)})"
    return f"{column.heading} {decimal(fmean(values))} % [{decimal(low)}, {decimal(high)}], {place}"


def _highest(runs: Sequence[Run], column: str) -> float:
    return max(float(run.get(column, math.nan)) for run in runs)


def _interval(values: Sequence[float], n: int) -> tuple[float, float]:
    """The 95 % interval of a mean: the wider one of Wilson's over n answers and, of several seeds, Student's t.

    All seeds answer the same questions: seeds that agree do not make these more.
    """
    from statsmodels.stats.weightstats import DescrStatsW

    low, high = wilson(fmean(values) / 100 * n, n)
    if len(values) > 1:
        of_seeds = DescrStatsW(values).tconfint_mean()
        low, high = min(low, float(of_seeds[0])), max(high, float(of_seeds[1]))
    return max(0.0, low), min(100.0, high)
