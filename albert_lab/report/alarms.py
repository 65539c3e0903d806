"""Scores that are not above a floor: on held-out text by rows, of fine-tuned tasks by columns; and their sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

from albert_lab.measures.catalog import labels
from albert_lab.score import BAGS, CHANCE, SEGMENTS, Alarm, Floor
from albert_lab.studies.claim import name
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.table import Row, task_columns


@dataclass(frozen=True)
class RowAlarm:
    """Runs of one row, or all runs of a table of several rows, whose score is not above a floor.

    Attributes:
        row: the labels of the row; None for all rows.
        metric, floor: the score, and the floor that it is not above.
        raised: the number of these runs.
        runs: the number of all runs of the row, or of the table.
    """

    row: dict[str, str] | None
    metric: str
    floor: Floor
    raised: int
    runs: int


@dataclass(frozen=True)
class TaskAlarm:
    """Runs whose score of a fine-tuned task, here its heading, is not above constant answers, of all runs with it."""

    heading: str
    raised: int
    runs: int


def held_out(table: Sequence[Row]) -> list[RowAlarm]:
    """The alarms of rows on their held-out scores; one for all rows if every run raises it."""
    rows = [row for row in table if row.runs]
    total = sum(len(row.runs) for row in rows)
    found = []
    for metric in labels():
        for floor in (CHANCE, SEGMENTS, BAGS):
            counts = [sum(_raises(run.record.alarms, metric, floor) for run in row.runs) for row in rows]
            if len(rows) > 1 and sum(counts) == total:
                found.append(RowAlarm(None, metric, floor, total, total))
            else:
                found += [
                    RowAlarm(row.labels, metric, floor, count, len(row.runs))
                    for row, count in zip(rows, counts, strict=True)
                    if count
                ]
    return found


def _raises(alarms: Sequence[Alarm], metric: str, floor: Floor) -> bool:
    return any((alarm.metric, alarm.floor) == (metric, floor) for alarm in alarms)


def of_tasks(experiment: Experiment, table: Sequence[Row]) -> list[TaskAlarm]:
    """The alarms of fine-tuned tasks; correlations and averages have no interval, and raise none."""
    found = []
    for column in task_columns(experiment, table):
        runs = {run.name: run for row in table for run in row.runs}.values()
        scored = [score for run in runs if (score := run.scores.get(column.key)) and score.low is not None]
        if raised := sum(score.low is not None and score.low <= score.floor for score in scored):
            found.append(TaskAlarm(column.heading, raised, len(scored)))
    return found


def section(experiment: Experiment, table: Sequence[Row]) -> str:
    """The alarms of a table as a list in Markdown; empty if there are none."""
    lines = [*map(sentence, held_out(table)), *map(_of_task, of_tasks(experiment, table))]
    return "\n".join(f"- {line}." for line in lines)


def sentence(alarm: RowAlarm) -> str:
    """The alarm of a row, without a full stop."""
    place = "at chance" if alarm.floor == CHANCE else f"above chance, not above {alarm.floor}"
    words = f"{labels()[alarm.metric]} {place}"
    if alarm.row is None:
        return f"All {alarm.runs} runs: {words}"
    comma = "" if alarm.floor == CHANCE else ","
    share = f"all {alarm.runs} runs" if alarm.raised == alarm.runs else f"{alarm.raised} of {alarm.runs} runs"
    return f"{name(alarm.row) or 'the only row'}: {words}{comma} in {'its one run' if alarm.runs == 1 else share}"


def _of_task(alarm: TaskAlarm) -> str:
    verb = "is" if alarm.raised == 1 else "are"
    return f"{alarm.heading}: {alarm.raised} of {alarm.runs} runs {verb} not above constant answers"
