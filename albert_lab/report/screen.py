"""The last screen of a study: its answer, the paper's table beside ours, a line a claim, one warning, two paths."""

import os
import sys
import textwrap
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from albert_lab.analysis import numbers
from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.answers import ClaimLine, answer, claim_lines
from albert_lab.report.report import PAGE, REPORT

LINES, WIDTH = 30, 100
MOST_ROWS = 9
WORD, EVIDENCE = 13, 46  # columns of the verdict, and of the number
COLOURS = {"yes": "green", "NO": "red", "undecided": "yellow", "cannot tell": "dim"}


def show(folder: Path, analysis: Analysis) -> None:
    """Print the last screen of a study whose report is in a folder, plain where the output is no terminal."""
    # Not wider than the terminal; without one, as wide as it may be.
    width = min(WIDTH, Console().width) if sys.stdout.isatty() else WIDTH
    print_on(Console(width=width, highlight=False), folder, analysis)


def print_on(console: Console, folder: Path, analysis: Analysis) -> None:
    for part in screen(folder, analysis, console.width):
        console.print(part, soft_wrap=isinstance(part, Text))  # lines fit, except for a long path


def screen(folder: Path, analysis: Analysis, width: int = WIDTH) -> list[Text | Table]:
    """The parts of the screen, at most LINES lines of this width in all."""
    name = analysis.experiment.title
    title = _wrapped(f"{name}{'' if name[-1] in '.?!' else '.'} {answer(analysis)}", width, 2)
    table, shown, rows_left = _table(analysis, width)
    left = len(analysis.main) - len(shown)
    notes = [_seeds(analysis), "the paper's numbers in brackets" if analysis.experiment.paper else ""]
    has_probe = any(metric in shown for metric, _ in analysis.by_probe)
    notes += [f"{numbers.BY_PROBE} by a probe: the model has no head for it" if has_probe else ""]
    notes += [f"{left} more columns" if left else "", f"{rows_left} more rows" if rows_left else ""]
    below = _wrapped("; ".join(filter(None, notes)) + (" in the report" if left or rows_left else ""), width, 2)
    claims = claim_lines(analysis)
    warnings = [f"(!) {claim.quote}: {claim.warning}" for claim in claims if claim.warning]
    warning = _wrapped(warnings[0], width, 2) if warnings else []
    paths = _paths(folder)
    fixed = len(title) + 4 + min(len(analysis.rows), MOST_ROWS) + len(below) + 1 + len(warning) + len(paths) + 2
    said = claims[: LINES - fixed - 1] if len(claims) > LINES - fixed else claims
    parts: list[Text | Table] = [*(Text(line, style="bold") for line in title), Text(), table]
    parts += [Text(line, style="dim") for line in below] + ([Text()] if said else [])
    evidence = min(EVIDENCE, max((len(_number(claim)) for claim in said), default=0))
    parts += [_claim(claim, width, evidence) for claim in said]
    parts += [Text(f"and {len(claims) - len(said)} more in the report", style="dim")] if len(said) < len(claims) else []
    parts += [Text(line, style="yellow") for line in warning]
    return [*parts, Text(), *map(Text, paths)]


def _table(analysis: Analysis, width: int) -> tuple[Table, list[str], int]:
    """The rows with as many metrics as fit, these metrics, and the number of rows that are left out."""
    rows = analysis.rows[:MOST_ROWS]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    table.add_column(_short(analysis.axes, width // 3), no_wrap=True)
    used, shown, columns = max(map(len, [analysis.axes, *rows])), [], []
    used = min(used, width // 3)
    for metric in analysis.main:
        cells = [numbers.cell(analysis, metric, row, spread=False) for row in rows]
        heading = f"{analysis.heading(metric)} {analysis.unit(metric)}".strip()
        used += max(map(len, [heading, *cells])) + 3
        if used > width:
            break
        table.add_column(heading, justify="right", no_wrap=True)
        shown.append(metric)
        columns.append(cells)
    for place, row in enumerate(rows):
        table.add_row(_short(row, width // 3), *(cells[place] for cells in columns))
    return table, shown, len(analysis.rows) - len(rows)


def _claim(claim: ClaimLine, width: int, evidence: int) -> Text:
    """A claim on one line: the verdict, the sentence, and the number; what does not fit is cut."""
    quote = width - WORD - evidence - 2
    text = Text(claim.word.ljust(WORD), style=f"bold {COLOURS.get(claim.word, '')}")
    text.append(_short(claim.quote, quote).ljust(quote + 2), style="none")
    return text.append(_short(_number(claim), evidence), style="dim")


def _number(claim: ClaimLine) -> str:
    return (claim.short or claim.evidence) + (" (!)" if claim.warning else "")


def _seeds(analysis: Analysis) -> str:
    of_rows = analysis.summary["seeds"][analysis.summary.index.isin(analysis.rows, level="row")]
    counts = sorted({*of_rows.astype(int)}) or [0]
    ends = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return "one seed" if ends == "1" else f"mean of {ends} seeds"


def _paths(folder: Path) -> list[str]:
    """The report and its picture, relative to the current folder if they are below it."""
    picture = next(iter(sorted(folder.glob("*.png"))), None)
    files = {"report": folder / (PAGE if (folder / PAGE).is_file() else REPORT)} | (
        {"picture": picture} if picture else {}
    )
    here = Path.cwd()
    return [f"{name:9}{os.path.relpath(file) if file.is_relative_to(here) else file}" for name, file in files.items()]


def _wrapped(text: str, width: int, lines: int) -> list[str]:
    return textwrap.wrap(text, width, max_lines=lines, placeholder=" …")


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
