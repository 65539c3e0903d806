"""What each row of a table learnt of the two sentence tasks, in one sentence a row."""

from collections.abc import Sequence

from albert_lab.report.markdown import interval, percent
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Column, Row, axis_labels, intrinsic_columns


def learnt(experiment: Experiment, axes: Sequence[str], table: Sequence[Row]) -> list[str]:
    """A sentence a row on its pair accuracies, each beside chance; none where a study shows no such accuracy."""
    columns = [column for column in intrinsic_columns(experiment) if column.key != "mlm_accuracy"]
    sentences = []
    for row in table:
        found = [_score(row, column) for column in columns if row.having(column.key)]
        if found:
            name = " ".join(axis_labels(experiment, row, axes))
            sentences.append(f"{name + ' row: ' if name else ''}{'; '.join(found)}.")
    return sentences


def _score(row: Row, column: Column) -> str:
    runs = row.having(column.key)
    values = [float(run[column.key]) for run in runs]
    floor = max(float(run[f"{column.key}_baseline"]) for run in runs)
    if len(runs) == 1:
        low, high = (float(runs[0][f"{column.key}_{end}"]) for end in ("low", "high"))
        shown = interval(runs[0], column.key)
    else:
        low, high = _over_seeds(values)
        shown = f"[{percent(low)}, {percent(high)}]"
    place = "above chance" if low > floor else "below chance" if high < floor else "at chance"
    return f"{column.heading} {percent(sum(values) / len(values))} % {shown}, {place}"


def _over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean over seeds (Student's t)."""
    from statsmodels.stats.weightstats import DescrStatsW

    low, high = DescrStatsW(values).tconfint_mean()
    return float(low), float(high)
