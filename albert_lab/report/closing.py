"""The output at the end of a study: verdicts, table, a sentence per row, alarms, and the path of the report."""

import os
from collections.abc import Sequence
from pathlib import Path

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.claims import Decision, Verdict
from albert_lab.report import alarms, looks, report, verdicts
from albert_lab.report.learnt import sentences
from albert_lab.report.markdown import scores_table


def text(folder: Path, found: Analysis) -> str:
    """The closing lines of a study whose report is in a folder, as Markdown."""
    experiment = found.experiment
    heading = "Claims of the paper:" if experiment.is_of_paper else "Claims:"
    parts = _list(heading, _claims(found))
    parts += filter(None, [looks.sentence(found)])
    parts += [scores_table(found, some) for some in (found.held_out, found.tasks) if some]
    parts += _list("What the rows learnt:", sentences(found))
    by_others = verdicts.decided_by_companions(found)
    parts += _list("By measures that are not the paper's:", by_others)
    if raised := alarms.section(found):
        parts.append(f"Alarms:\n{raised}")
    parts.append("\n".join(_places(folder, experiment.figures)))
    return "\n\n".join(parts)


def _list(heading: str, lines: Sequence[str]) -> list[str]:
    return ["\n".join([heading, *(f"- {line}" for line in lines)])] if lines else []


def _claims(found: Analysis) -> list[str]:
    """A line for each claim that was run, and one for all others."""
    lines = [_claim(verdict, found) for verdict in found.verdicts if verdict.decision is not Decision.NOT_RUN]
    others = [verdict for verdict in found.verdicts if verdict.decision is Decision.NOT_RUN]
    if others:
        metrics = dict.fromkeys(found.scores.column(verdict.claim.metric) for verdict in others)
        lines.append(f"{Decision.NOT_RUN}: {len(others)} on {', '.join(metrics)}")
    return lines


def _claim(verdict: Verdict, found: Analysis) -> str:
    metric = found.scores.column(verdict.claim.metric)
    return f"{verdict.decision}: “{verdict.claim.quote}” ({metric}: {verdicts.check(verdict)})"


def _places(folder: Path, figures: Sequence[str]) -> list[str]:
    """The paths of report, page and first figure, relative to the current folder if they are below it."""
    files = {"report": folder / report.REPORT, "page": folder / report.PAGE}
    drawn = [folder / f"{name}.png" for name in figures if (folder / f"{name}.png").is_file()]
    files |= {"figure": drawn[0]} if drawn else {}
    below = Path.cwd()
    shown = {name: Path(os.path.relpath(file)) if file.is_relative_to(below) else file for name, file in files.items()}
    return [f"{name}: {file}" for name, file in shown.items()]
