"""What did not rise above chance: of scores on held-out text a row a line, of fine-tuned tasks a column a line."""

from collections.abc import Sequence

import pandas as pd

from albert_lab.report.claims import name
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import INTRINSIC_HEADINGS, Row, Run, task_columns


def section(experiment: Experiment, table: Sequence[Row], tunings: pd.DataFrame) -> str:
    """The alarms of a table as a list in Markdown; empty where there are none.

    Args:
        experiment: its columns.
        table: its rows.
        tunings: a line a fine-tuning.
    """
    lines = [line for column in INTRINSIC_HEADINGS for line in _at_chance(table, column)]
    lines += _unmoved(experiment, table, tunings)
    return "\n".join(f"- {line}" for line in lines)


def _at_chance(table: Sequence[Row], column: str) -> list[str]:
    heading = INTRINSIC_HEADINGS[column]
    rows = [row for row in table if row.runs]
    counts = [sum(_has_alarm(run, column) for run in row.runs) for row in rows]
    total = sum(len(row.runs) for row in rows)
    if len(rows) > 1 and sum(counts) == total:
        return [f"All {total} runs: {heading} at chance."]
    return [
        f"{name(row.labels)}: {heading} at chance in {_share(count, len(row.runs))}."
        for row, count in zip(rows, counts, strict=True)
        if count
    ]


def _has_alarm(run: Run, column: str) -> bool:
    alarms = run.get("alarms")  # as text: the column, then what is wrong with it
    return isinstance(alarms, str) and any(alarm.split()[0] == column for alarm in alarms.split("; "))


def _share(count: int, n: int) -> str:
    if n == 1:
        return "its one run"
    return f"all {n} runs" if count == n else f"{count} of {n} runs"


def _unmoved(experiment: Experiment, table: Sequence[Row], tunings: pd.DataFrame) -> list[str]:
    lines = []
    for column in task_columns(experiment, tunings):
        low, baseline = f"{column.key}_low", f"{column.key}_baseline"  # an average has neither
        scored = {run["run"]: run for row in table for run in row.having(low)}
        above = sum(run[low] > run[baseline] for run in scored.values())
        if above < len(scored):
            verb = "is" if above == 1 else "are"
            lines.append(f"{column.heading}: {above} of {len(scored)} runs {verb} above constant answers.")
    return lines
