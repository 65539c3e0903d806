"""Scores that are not above a floor: on held-out text by rows, of fine-tuned tasks by columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from albert_lab.measures.catalog import labels
from albert_lab.score import BAGS, CHANCE, SEGMENTS, Alarm, Floor
from albert_lab.studies.table import Column, Row


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
    alarms = []
    for metric in labels():
        for floor in (CHANCE, SEGMENTS, BAGS):
            counts = [sum(_raises(run.record.alarms, metric, floor) for run in row.runs) for row in rows]
            if len(rows) > 1 and sum(counts) == total:
                alarms.append(RowAlarm(None, metric, floor, total, total))
            else:
                alarms += [
                    RowAlarm(row.labels, metric, floor, count, len(row.runs))
                    for row, count in zip(rows, counts, strict=True)
                    if count
                ]
    return alarms


def _raises(alarms: Sequence[Alarm], metric: str, floor: Floor) -> bool:
    return any((alarm.metric, alarm.floor) == (metric, floor) for alarm in alarms)


def of_tasks(columns: Sequence[Column], table: Sequence[Row]) -> list[TaskAlarm]:
    alarms = []
    for column in columns:
        runs = {run.name: run for row in table for run in row.runs}.values()
        scored = [score for run in runs if (score := run.scores.get(column.key)) and score.low is not None]
        if raised := sum(score.low is not None and score.low <= score.floor for score in scored):
            alarms.append(TaskAlarm(column.heading, raised, len(scored)))
    return alarms
