"""The tables of a report, as headings and cells of plain text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.frame import RANDOM
from albert_lab.report.numbers import BY_PROBE, cell, value
from albert_lab.runs.reported import FilledColumn

MOST_COLUMNS = 8
OF_THE_MACHINE = ("total_seconds", "peak_memory_bytes")  # of no interest to a reader


@dataclass(frozen=True)
class Table:
    """Headings and cells as plain text; the first column names the lines, the others have
    numbers.
    """

    header: Sequence[str]
    body: Sequence[Sequence[str]]


def main_table(analysis: Analysis) -> Table:
    """A line a row: the means over seeds of the first metrics, with the paper's numbers in
    brackets.
    """
    return _of_metrics(analysis, analysis.main[: MOST_COLUMNS - 1])


def legend(analysis: Analysis, main: Table) -> str:
    """What the marks in the cells of a main table mean."""
    text = "".join(cell for row in main.body for cell in row[1:])
    of_paper = ", the paper’s in brackets" if analysis.experiment.paper and "(" in text else ""
    probe = (
        " * By a probe: a linear classifier on the frozen output, since the model has no head for "
        "this task."
    )
    has_spread = bool(analysis.summary["sd"].notna().any())
    means = "Means over seeds ± their standard deviation" if has_spread else "One seed a row"
    return f"{means}{of_paper}." + probe * (BY_PROBE in text)


def other_tables(analysis: Analysis) -> list[Table]:
    """The metrics that the main table has no room for, at most seven a table."""
    shown = analysis.main[: MOST_COLUMNS - 1]
    others = [metric for metric in analysis.metrics if metric not in (*shown, *OF_THE_MACHINE)]
    parts = range(0, len(others), MOST_COLUMNS - 1)
    return [_of_metrics(analysis, others[start : start + MOST_COLUMNS - 1]) for start in parts]


def _of_metrics(analysis: Analysis, metrics: Sequence[str]) -> Table:
    header = [
        f"{analysis.heading(metric)} {_unit(analysis.unit(metric))}".strip() for metric in metrics
    ]
    body = [[row, *(cell(analysis, metric, row) for metric in metrics)] for row in analysis.rows]
    return Table([analysis.axes, *header], body)


def _unit(unit: str) -> str:
    return "" if unit == "nats" else unit  # said by the name of a loss


def tasks_table(analysis: Analysis) -> Table:
    """The fine-tuned tasks: their examples, what simple means give, and the best row beside
    random weights.
    """
    columns: dict[str, FilledColumn] = {}
    for run in analysis.study.runs:
        for column in run.pretrained:
            columns.setdefault(column.task, column)
    body = []
    for task, column in columns.items():
        means: Any = analysis.summary.loc[task]
        random: Any = means["mean"].reindex([row + RANDOM for row in analysis.rows])
        rows = means.reindex(analysis.rows)
        best = rows["mean"].idxmax()
        # Random weights were fine-tuned for some rows only: if not for the best, the best of those.
        of_random = random.fillna(random.max())[f"{best}{RANDOM}"]
        numbers = [rows["floor"].mean(), rows["words"].max(), of_random, rows["mean"].max()]
        last = column.finetunings[-1]
        examples = [f"{last.train.used:,}", f"{last.dev.used:,}"]
        says = "yes" if means["counts"].all() else "no"
        cells = [value(float(number), "%") for number in numbers]
        body.append([column.title, *examples, *cells, says])
    header = [
        "task",
        "train",
        "dev",
        "constant %",
        "words alone %",
        "random weights %",
        "best row %",
        "counts",
    ]
    return Table(header, body)
