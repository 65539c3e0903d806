"""Scores that are not above their floor: one line per row on held-out text, one per column of fine-tuned tasks."""

from collections.abc import Sequence

import pandas as pd

from albert_lab.score import NOT_ABOVE_BAGS
from albert_lab.studies.claim import name
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import INTRINSIC_HEADINGS, Row, Run, task_columns


def section(experiment: Experiment, table: Sequence[Row], tunings: pd.DataFrame) -> str:
    """The alarms of a table as a list in Markdown; empty if there are none.

    Args:
        experiment: its columns.
        table: its rows.
        tunings: one line per fine-tuning.
    """
    lines = [*held_out(table), *_unmoved(experiment, table, tunings)]
    return "\n".join(f"- {line}." for line in lines)


def held_out(rows: Sequence[Row]) -> list[str]:
    """The alarms of rows on their held-out scores, each without a full stop."""
    return [
        line
        for column in INTRINSIC_HEADINGS
        for lexical in (False, True)
        for line in _at_floor(rows, column, lexical=lexical)
    ]


def _at_floor(table: Sequence[Row], column: str, *, lexical: bool) -> list[str]:
    """One line per row with runs at chance, or, if lexical, above chance but not above bags of tokens."""
    words = f"{INTRINSIC_HEADINGS[column]} {f'above chance, {NOT_ABOVE_BAGS},' if lexical else 'at chance'}"
    rows = [row for row in table if row.runs]
    counts = [sum(_has_alarm(run, column, lexical=lexical) for run in row.runs) for row in rows]
    total = sum(len(row.runs) for row in rows)
    if len(rows) > 1 and sum(counts) == total:
        return [f"All {total} runs: {words.rstrip(',')}"]
    return [
        f"{name(row.labels) or 'the only row'}: {words} in {_share(count, len(row.runs))}"
        for row, count in zip(rows, counts, strict=True)
        if count
    ]


def _has_alarm(run: Run, column: str, *, lexical: bool) -> bool:
    alarms = run.get("alarms")  # as text: the column, then the reason of the alarm
    found = alarms.split("; ") if isinstance(alarms, str) and alarms else []
    return any(alarm.split()[0] == column and (NOT_ABOVE_BAGS in alarm) == lexical for alarm in found)


def _share(count: int, n: int) -> str:
    if n == 1:
        return "its one run"
    return f"all {n} runs" if count == n else f"{count} of {n} runs"


def _unmoved(experiment: Experiment, table: Sequence[Row], tunings: pd.DataFrame) -> list[str]:
    lines = []
    for column in task_columns(experiment, tunings):
        low, floor = f"{column.key}_low", f"{column.key}_floor"  # an average has neither
        scored = {run["run"]: run for row in table for run in row.having(low)}
        stuck = sum(not run[low] > run[floor] for run in scored.values())
        if stuck:
            verb = "is" if stuck == 1 else "are"
            lines.append(f"{column.heading}: {stuck} of {len(scored)} runs {verb} not above constant answers")
    return lines
