"""A report as files: its records, the text, the page, the picture, and the numbers as CSV."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from albert_lab.analysis.analysis import Analysis, analyse, read
from albert_lab.analysis.verdicts import Verdict
from albert_lab.figures import figures
from albert_lab.messages import to_stderr
from albert_lab.report import markdown, page, wording
from albert_lab.storage import write_atomically
from albert_lab.studies import study as studies
from albert_lab.studies.plan import Plan
from albert_lab.studies.study import collect

REPORT, PAGE, NUMBERS = "report.md", "report.html", "results.csv"


def write(folder: Path, analysis: Analysis) -> Path:
    """Write an analysed study and its report into a folder; return the path of the Markdown."""
    studies.write(folder, analysis.study)
    return _write(folder, analysis)


def write_of(plan: Plan, failures: Mapping[str, str], command: str) -> Analysis | None:
    """Collect the runs of a plan that are done, and write their report; None if there are none."""
    study = collect(plan.updated(), failures, command, to_stderr)
    if not study.runs:
        return None
    analysis = analyse(study)
    write(plan.report_folder, analysis)
    return analysis


def rebuild(folder: Path) -> Path:
    """Write report.md, its page, picture and table of numbers anew from the folder's records; return report.md.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    return _write(folder, read(folder))


def _write(folder: Path, analysis: Analysis) -> Path:
    title = wording.answer(analysis)
    picture = figures.draw_first(folder, analysis, title)
    text = markdown.render(analysis, (picture, title) if picture else None)
    write_atomically(folder / NUMBERS, analysis.frame.numbers.to_csv(index=False))
    write_atomically(folder / REPORT, text)
    write_atomically(folder / PAGE, page.page(text, folder))
    return folder / REPORT


def as_json(name: str, analysis: Analysis) -> str:
    """The summary and the verdicts of a study of this name as one JSON document; missing numbers are null."""
    rows, axes = list[dict[str, Any]](), analysis.frame.rows.set_index("row")
    for row, lines in analysis.summary.groupby(level="row", sort=False):
        labels = {axis: axes.loc[row, axis] for axis in analysis.study.axes if row in axes.index}
        rows.append({"row": row, **labels, "scores": lines.droplevel("row").to_dict("index")})
    content = {
        "experiment": name,
        "title": analysis.experiment.title,
        "answer": wording.answer(analysis),
        "rows": rows,
        "verdicts": [as_data(analysis, verdict) for verdict in analysis.verdicts],
    }
    return json.dumps(with_null(content), indent=2)


def as_data(analysis: Analysis, verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain data; numbers that are not known are NaN."""
    measured, claim = verdict.effect, verdict.claim
    said = wording.words(analysis, verdict)
    numbers = {name: getattr(measured, name, math.nan) for name in ("value", "low", "high", "paper", "segments")}
    return {
        "claim": wording.short(claim),
        "quote": claim.quote,
        "section": claim.section,
        "by": verdict.kind.value,
        "metric": verdict.metric,
        "verdict": verdict.outcome.value,
        "can_tell": verdict.tells.value,
        "reason": verdict.reason and verdict.reason.value,
        "form": measured and measured.form.value,
        "rows": [{"weight": weight, "row": row} for weight, row in (measured.rows if measured else ())],
        "effect": numbers.pop("value"),
        **numbers,
        "p": verdict.p,
        "evidence": said.evidence,
        "warning": said.warning,
    }


def with_null(content: Any) -> Any:
    """Plain data in which NaN is None, for JSON."""
    return to_jsonable_python(content, inf_nan_mode="null")
