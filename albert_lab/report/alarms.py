"""The sentences of alarms."""

from albert_lab.analysis.alarms import RowAlarm, TaskAlarm
from albert_lab.analysis.analysis import Analysis
from albert_lab.measures.catalog import labels
from albert_lab.score import CHANCE
from albert_lab.studies.claim import name


def section(analysis: Analysis) -> str:
    lines = [*map(sentence, analysis.row_alarms), *map(_of_task, analysis.task_alarms)]
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
