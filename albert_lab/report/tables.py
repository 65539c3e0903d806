"""The tables of a report, as headings and cells of plain text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.frame import RANDOM
from albert_lab.report.numbers import BY_PROBE, cell, value

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
    """The fine-tuned tasks: their examples, what simple means give, and the best row beside its
    random weights.
    """
    body = []
    for task in dict.fromkeys(
        column.task for run in analysis.study.runs for column in run.pretrained
    ):
        column = next(
            column
            for run in analysis.study.runs
            for column in run.pretrained
            if column.task == task
        )
        means: Any = analysis.summary.loc[task]
        rows = means[~means.index.str.endswith(RANDOM)]
        # Random weights were fine-tuned for some rows only: the best of those is the fair
        # comparison.
        has_random = (rows.index + RANDOM).isin(means.index)
        of_rows = rows[has_random] if has_random.any() else rows
        best, random = (
            of_rows["mean"].max(),
            means["mean"].get(f"{of_rows['mean'].idxmax()}{RANDOM}", float("nan")),
        )
        numbers = [of_rows["floor"].mean(), of_rows["words"].max(), random, best]
        last = column.finetunings[-1]
        examples = [f"{last.train.used:,}", f"{last.dev.used:,}"]
        says = "yes" if of_rows["counts"].all() else "no"
        body.append(
            [column.title, *examples, *(value(float(number), "%") for number in numbers), says]
        )
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


def runs_table(analysis: Analysis) -> Table:
    """Every run by its row and seed, with its folder's name, its cost, and when it finished."""
    runs = {run.name: run.record for run in analysis.study.runs}
    places: Any = analysis.frame.numbers[["row", "seed", "run"]].drop_duplicates()
    body = [
        [
            f"{row}, seed {seed}",
            name,
            f"{runs[name].training.steps:,}",
            value(runs[name].training.final_loss or math.nan, "nats"),
            f"{runs[name].training.total_seconds:,.0f}",
            runs[name].provenance.finished,
        ]
        for row, seed, name in places.itertuples(index=False)
        if name in runs
    ]
    return Table(["row", "run", "steps", "training loss", "seconds", "finished"], body)
