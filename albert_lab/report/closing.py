"""The output at the end of a study: table, verdicts, a sentence per row, alarms, and the path of the report."""

import os
from collections.abc import Sequence
from pathlib import Path

from albert_lab.report import alarms, looks, report, verdicts
from albert_lab.report.claims import decide
from albert_lab.report.learnt import learnt
from albert_lab.report.markdown import scores_table
from albert_lab.studies import study
from albert_lab.studies.table import intrinsic_columns, task_columns


def text(folder: Path) -> str:
    """The closing lines of the study in a report folder, as Markdown.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    found = study.read(folder)
    experiment, table, axes = found.experiment, found.rows, found.axes
    columns = [intrinsic_columns(experiment), task_columns(experiment, table)]
    parts = [scores_table(experiment, axes, table, some) for some in columns if some]
    parts += _list("What the rows learnt:", learnt(experiment, axes, table))
    parts += filter(None, [looks.sentence(found, decide(experiment, table, found.plan))])
    heading = "Claims of the paper:" if experiment.paper or experiment.paper_figure else "Claims:"
    parts += _list(heading, [_claim(verdict) for verdict in verdicts.as_data(experiment, table, found.plan)])
    by_others = verdicts.decided_by_companions(experiment, table, found.plan)
    parts += _list("By measures that are not the paper's:", by_others)
    if raised := alarms.section(experiment, table):
        parts.append(f"Alarms:\n{raised}")
    parts.append("\n".join(_places(folder, experiment.figures)))
    return "\n\n".join(parts)


def _list(heading: str, lines: Sequence[str]) -> list[str]:
    return ["\n".join([heading, *(f"- {line}" for line in lines)])] if lines else []


def _claim(verdict: dict) -> str:
    return f"{verdict['verdict']}: “{verdict['quote']}” ({verdict['metric']}: {verdict['check']})"


def _places(folder: Path, figures: Sequence[str]) -> list[str]:
    """The paths of report, page and first figure, relative to the current folder if they are below it."""
    files = {"report": folder / report.REPORT, "page": folder / report.PAGE}
    drawn = [folder / f"{name}.png" for name in figures if (folder / f"{name}.png").is_file()]
    files |= {"figure": drawn[0]} if drawn else {}
    below = Path.cwd()
    shown = {name: Path(os.path.relpath(file)) if file.is_relative_to(below) else file for name, file in files.items()}
    return [f"{name}: {file}" for name, file in shown.items()]
