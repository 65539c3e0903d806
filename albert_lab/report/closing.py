"""The output at the end of a study: verdicts, table, a sentence per row, alarms, and the path of the report."""

import os
from collections.abc import Sequence
from pathlib import Path

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.decisions import Decision
from albert_lab.report import alarms, report, verdicts
from albert_lab.report.learnt import sentences
from albert_lab.report.markdown import scores_table
from albert_lab.report.templates import fill


def text(folder: Path, analysis: Analysis) -> str:
    """The closing lines of a study whose report is in a folder, as Markdown."""
    return fill(
        "closing.md.j2",
        is_of_paper=analysis.experiment.is_of_paper,
        claims=_claims(analysis),
        tables=[scores_table(analysis, some) for some in (analysis.held_out, analysis.tasks) if some],
        learnt=sentences(analysis),
        companions=verdicts.decided_by_companions(analysis),
        alarms=alarms.section(analysis),
        places=_places(folder, analysis.experiment.figures),
    ).strip()


def _claims(analysis: Analysis) -> list[str]:
    lines = [
        f"{verdict.decision}: “{verdict.claim.quote}”"
        f" ({analysis.scores.column(verdict.claim.metric)}: {verdicts.check(verdict, analysis.names)})"
        for verdict in analysis.verdicts
        if verdict.decision is not Decision.NOT_RUN
    ]
    others = [verdict.claim.metric for verdict in analysis.verdicts if verdict.decision is Decision.NOT_RUN]
    metrics = dict.fromkeys(map(analysis.scores.column, others))
    return [*lines, f"{Decision.NOT_RUN}: {len(others)} on {', '.join(metrics)}"] if others else lines


def _places(folder: Path, figures: Sequence[str]) -> dict[str, Path]:
    """The paths of report, page and first figure, relative to the current folder if they are below it."""
    files = {"report": folder / report.REPORT, "page": folder / report.PAGE}
    drawn = [folder / f"{name}.png" for name in figures if (folder / f"{name}.png").is_file()]
    files |= {"figure": drawn[0]} if drawn else {}
    below = Path.cwd()
    return {name: Path(os.path.relpath(file)) if file.is_relative_to(below) else file for name, file in files.items()}
