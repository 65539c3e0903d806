"""What each row of a table learnt of the two sentence tasks, in one sentence a row."""

import math
from collections.abc import Sequence
from statistics import fmean

from albert_lab.report.markdown import decimal
from albert_lab.score import NOT_ABOVE_BAGS
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Column, Row, Run, axis_labels, intrinsic_columns


def learnt(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> list[str]:
    """A sentence a row on its pair accuracies, each beside its floors; none where a study shows no such accuracy."""
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
    if len(runs) == 1:
        low, high = (float(runs[0][f"{column.key}_{end}"]) for end in ("low", "high"))
    else:
        low, high = _over_seeds(values)
    floor, lexical = (_highest(runs, f"{column.key}_{kind}") for kind in ("floor", "lexical_floor"))
    place = "above chance" if low > floor else "below chance" if high < floor else "at chance"
    if low > floor and not math.isnan(lexical):
        place += f", {'above bags of tokens' if low > lexical else NOT_ABOVE_BAGS} ({decimal(lexical)})"
    return f"{column.heading} {decimal(fmean(values))} % [{decimal(low)}, {decimal(high)}], {place}"


def _highest(runs: Sequence[Run], column: str) -> float:
    return max(float(run.get(column, math.nan)) for run in runs)


def _over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean over seeds (Student's t)."""
    from statsmodels.stats.weightstats import DescrStatsW

    low, high = DescrStatsW(values).tconfint_mean()
    return float(low), float(high)
