"""The folder of published reports and its scoreboard: a line a sentence of the paper, and other reports below."""

import os
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from albert_lab.analysis import numbers
from albert_lab.analysis.analysis import Analysis, read
from albert_lab.analysis.answers import answer, word
from albert_lab.analysis.sentences import Sentence, reports, sentences
from albert_lab.errors import ConfigError
from albert_lab.report import report
from albert_lab.report.markdown import listed, plain
from albert_lab.storage import write_atomically
from albert_lab.studies.study import EXPERIMENT

PAGE, PICTURE, TITLE = "README.md", "claims.png", "# What holds of the paper"
MOST_LINES = 40
QUOTE = 110  # characters of a sentence
# What `albert-lab report` makes again from the records, besides the text and its picture.
DERIVED = (".csv", ".html", ".tex")


def write(root: Path) -> Path:
    """Write the scoreboard of the reports below a folder into it; return its path.

    Raises:
        ConfigError: a file of a report is missing or cannot be read, or a README.md there is another page.
    """
    page = _page(root)
    write_atomically(page, render(root))
    return page


def _page(root: Path) -> Path:
    """The path of the scoreboard; ConfigError if another page is there."""
    page = root / PAGE
    if page.exists() and not page.read_text(errors="replace").startswith(TITLE):
        remedy = "move it, or publish elsewhere: ALBERT_LAB_PUBLISHED names the folder"
        raise ConfigError(f"{page} is no scoreboard, and would be overwritten: {remedy}")
    return page


def publish(folder: Path, root: Path) -> Path:
    """Write a report below a folder of published reports, as `<root>/<scale>-<corpus>/<name>`; return its report.md.

    Raises:
        ConfigError: not a report, a file in it cannot be read, or the folder has a README.md that is no scoreboard.
    """
    _page(root)  # before anything is written
    analysis = read(folder)
    target = root / f"{analysis.study.scale}-{analysis.study.corpus}" / folder.resolve().name
    written = report.write(target, analysis)
    for file in [file for file in target.iterdir() if file.suffix in DERIVED]:
        file.unlink()
    write(root)
    return written


def holds_reports(root: Path) -> bool:
    """Whether a folder is not a report and has reports two levels below it."""
    return not (root / EXPERIMENT).exists() and any(root.glob(f"*/*/{EXPERIMENT}"))


def render(root: Path) -> str:
    """The text of the scoreboard: a line a sentence, at the largest scale at which it was run."""
    found = reports(root)
    lines = sentences(found)
    run = [(line, line.report) for line in lines if line.report]
    places = dict.fromkeys(_where(line) for line in lines if not line.report)
    header = ["sentence of the paper", "where", "paper", "here", "verdict", "can this scale tell", "report"]
    body = [[*map(plain, _cells(line)), _link(*report, root)] for line, report in run[:MOST_LINES]]
    above = {folder for _, (folder, _) in run}
    other = [
        f"{_link(folder, analysis, root)}: {plain(analysis.experiment.title)} {plain(answer(analysis))}"
        for folder, analysis in found.items()
        if folder not in above and analysis.study.axes
    ]
    parts = [
        TITLE,
        "A line is a sentence of the paper, at the largest scale at which it was run. Here: what was measured, with its"
        " 95 % interval over seeds and held-out documents.",
        f"![The paper's effects beside ours]({PICTURE})" if (root / PICTURE).is_file() else "",
        tabulate(body, header, tablefmt="pipe", disable_numparse=True),
        f"Not run at any scale: {len(lines) - len(run)} sentences ({', '.join(places)})." if places else "",
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
    return report.with_null(content)


def as_text(lines: Sequence[Sentence]) -> str:
    """Sentences for a terminal: the verdict on each, and what was measured."""
    rows = []
    for line in sorted(lines, key=lambda line: not line.report):
        cells = _cells(line) if line.report else [textwrap.shorten(line.quote, QUOTE), _where(line), "", "not run"]
        rows.append([word(line.verdict), *cells[:2], cells[3]])
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


def _link(folder: Path, analysis: Analysis, root: Path) -> str:
    """The link to a report, with a mark if its runs used own code."""
    path = Path(os.path.relpath(folder / report.REPORT, root)).as_posix()
    mark = f" (own code: {plain(', '.join(analysis.own_code))})" if analysis.own_code else ""
    return f"[{plain(f'{folder.parent.name}/{folder.name}')}]({path.replace(' ', '%20')}){mark}"
