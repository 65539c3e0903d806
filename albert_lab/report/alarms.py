"""The sentences of alarms."""

from albert_lab.analysis.alarms import RowAlarm
from albert_lab.analysis.analysis import Analysis
from albert_lab.measures.catalog import labels
from albert_lab.report.templates import call
from albert_lab.studies.claims import Name


def section(analysis: Analysis) -> str:
    of_rows = [sentence(alarm, analysis.names) for alarm in analysis.row_alarms]
    of_tasks = [call("alarm.md.j2", "of_task", alarm) for alarm in analysis.task_alarms]
    return "\n".join(f"- {line}." for line in (*of_rows, *of_tasks))


def sentence(alarm: RowAlarm, name: Name) -> str:
    """The alarm of a row, without a full stop."""
    row = "" if alarm.row is None else name(alarm.row)
    return call("alarm.md.j2", "of_row", alarm, labels()[alarm.metric], row)
