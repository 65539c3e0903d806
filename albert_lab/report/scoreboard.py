"""The scoreboard: all sentences of the paper with what was found here, a line each, and other reports below."""

import os
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from albert_lab.analysis.sentences import Sentence, reports, sentences
from albert_lab.report import numbers
from albert_lab.report.claims import answer, word
from albert_lab.report.markdown import listed, plain
from albert_lab.report.report import REPORT, with_null
from albert_lab.storage import write_atomically
from albert_lab.studies.study import EXPERIMENT

PAGE, PICTURE = "README.md", "claims.png"
MOST_LINES = 40
QUOTE = 110  # characters of a sentence


def write(root: Path) -> Path:
    """Write the scoreboard of the reports below a folder into it; return its path.

    Raises:
        ConfigError: a file of a report is missing or cannot be read.
    """
    write_atomically(root / PAGE, render(root))
    return root / PAGE


def holds_reports(root: Path) -> bool:
    """Whether a folder is not a report and has reports two levels below it."""
    return not (root / EXPERIMENT).exists() and any(root.glob(f"*/*/{EXPERIMENT}"))


def render(root: Path) -> str:
    """The text of the scoreboard: a line a sentence, at the largest scale at which it was run."""
    found = reports(root)
    lines = sentences(found)
    run = [line for line in lines if line.report]
    others = [line for line in lines if not line.report]
    header = ["sentence of the paper", "where", "paper", "here", "verdict", "can this scale tell", "report"]
    body = [[*map(plain, _cells(line)), _link(line.report[0], root)] for line in run[:MOST_LINES] if line.report]
    above = {line.report[0] for line in run if line.report}
    other = [
        f"{_link(folder, root)}: {plain(analysis.experiment.title)} {plain(answer(analysis))}"
        for folder, analysis in found.items()
        if folder not in above and analysis.study.axes
    ]
    parts = [
        "# What holds of the paper",
        "A line is a sentence of the paper, at the largest scale at which it was run. Here: what was measured, with its"
        " 95 % interval over seeds and held-out documents.",
        f"![The paper's effects beside ours]({PICTURE})" if (root / PICTURE).is_file() else "",
        tabulate(body, header, tablefmt="pipe", disable_numparse=True),
        f"Not run at any scale: {len(others)} sentences ({', '.join(dict.fromkeys(map(_where, others)))})."
        if others
        else "",
        "## Other reports" if other else "",
        listed(other),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_data(lines: Sequence[Sentence]) -> list[dict[str, Any]]:
    """Sentences as plain values: the deciding test of each, with its report; numbers that are not known are null."""
    content = [
        {
            "sentence": line.quote,
            "source": line.source,
            **({} if line.report is None else {**line.deciding.to_dict(), "report": str(line.report[0])}),
            "verdict": line.verdict,
            "can_tell": line.can_tell,
        }
        for line in lines
    ]
    return with_null(content)


def as_text(lines: Sequence[Sentence]) -> str:
    """Sentences for a terminal: the verdict on each, and what was measured."""
    rows = [[word(line.verdict), *_cells(line)[:2], _cells(line)[3]] for line in lines if line.report]
    rows += [
        [word(line.verdict), textwrap.shorten(line.quote, QUOTE), _where(line), "not run"]
        for line in lines
        if not line.report
    ]
    return tabulate(rows, tablefmt="plain", disable_numparse=True, maxcolwidths=[11, 50, 16, 60])


def _cells(line: Sentence) -> list[str]:
    assert line.report is not None
    test, analysis = line.deciding, line.report[1]
    unit = analysis.unit(test["metric"])
    paper = numbers.number(test, test["paper"], unit) if test["paper"] == test["paper"] else numbers.MISSING
    here = f"{analysis.heading(test['metric'])}, {test['compared']}: {numbers.effect(test, unit)}"
    here += f", and {line.tests - 1} more" if line.tests > 1 else ""
    quote = textwrap.shorten(line.quote, QUOTE, placeholder=" …")
    return [quote, _where(line), paper, here, word(line.verdict), "yes" if line.can_tell else "no"]


def _where(line: Sentence) -> str:
    """The tables and figures that a sentence is about."""
    return ", ".join(re.findall(r"(?:Table|Figure)s? [\d\w]+(?: and \d+)?", line.source)) or line.source


def _link(folder: Path, root: Path) -> str:
    path = Path(os.path.relpath(folder / REPORT, root)).as_posix()
    return f"[{plain(f'{folder.parent.name}/{folder.name}')}]({path.replace(' ', '%20')})"
