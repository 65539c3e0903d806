"""The last screen of a study: its answer, the paper's table beside ours, a line a claim, one
reason, two paths.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from tabulate import tabulate

from albert_lab.analysis.analysis import Analysis
from albert_lab.analysis.frame import NOTHING_LEARNT
from albert_lab.analysis.verdict import Effect, Form
from albert_lab.messages import counted, printable
from albert_lab.report import numbers, wording
from albert_lab.report.report import PAGE, REPORT
from albert_lab.report.wording import Words
from albert_lab.studies.claims import LONGEST_SHORT, BaseClaim, Kind
from albert_lab.terminal.console import PlainConsole, from_here

LINES = 30
WIDTH = 100
MOST_ROWS = 9
COLUMNS = ((Kind.LOSS, Kind.NUMBER), (Kind.TASKS,))  # of verdicts, by kinds of evidence
Said = list[tuple[BaseClaim, dict[Kind, Words]]]  # what reports say of claims
COLOURS = {
    "yes": "green",
    "NO": "red",
    "undecided": "yellow",
    "cannot tell": "dim",
    "not run": "dim",
}
MEANINGS = "undecided: within the noise; cannot tell: the number shows nothing; empty: not asked"


def show(folder: Path, analysis: Analysis) -> None:
    """Print the last screen of a study whose report is in a folder, plain where the output is no
    terminal.
    """
    # Not wider than the terminal; without one, as wide as it may be.
    width = min(WIDTH, PlainConsole().width) if sys.stdout.isatty() else WIDTH
    print_on(PlainConsole(width=width), folder, analysis)


def print_on(console: Console, folder: Path, analysis: Analysis) -> None:
    """Print the screen, at most LINES lines in all; those of long paths may be longer."""
    heading = Text(printable(analysis.experiment.title))
    heading.append(f"\n{wording.answer(analysis)}", style="bold")
    if count := wording.claims_counted(analysis):
        heading.append(f"\n{count}")
    metrics = _metrics_that_fit(console, analysis)
    notes = Text(_notes(analysis, len(metrics)), style="dim")
    above = Group(heading, "", _table(analysis, metrics, console.width), notes, "")
    console.print(above)
    paths = _paths(folder)
    if said := wording.claims_of(analysis):
        room = LINES - len(console.render_lines(above)) - len(paths) - 1
        console.print(_claims_that_fit(console, said, room), "", sep="\n")
    for path in paths:
        console.print(path, soft_wrap=True)


def compared(a: Analysis, b: Analysis, table: pd.DataFrame) -> str:
    """The rows and scores that two reports have, those of the main table first: both means, and
    the second minus the first; with what A and B are at most LINES lines.

    Args:
        table: as analysis.compare_summaries() gives it.
    """
    lines = []
    for metric in a.metrics:
        unit = a.unit(metric)
        for row in (row for row in a.rows if (metric, row) in table.index):
            line = table.loc[(metric, row)]
            means = [numbers.value(line[mean], unit) for mean in ("mean_a", "mean_b")]
            value, low, high = line[["difference", "low", "high"]].tolist()
            effect = Effect(
                metric, unit, Form.DIFFERENCE, (), -math.inf, math.inf, value, low, high, math.nan
            )
            heading = f"{a.heading(metric)} {unit}"
            lines.append([heading, printable(row), *means, numbers.effect(effect)])
    header = ["score", "row", "A", "B", "B − A, 95 % interval"]
    # Above it stands what A and B are.
    most = LINES - 5
    text = tabulate(lines[:most], header, tablefmt="simple", disable_numparse=True)
    hidden = len(lines) - most
    return f"{text}\n{hidden} more with --json" if hidden > 0 else text


def _table(analysis: Analysis, metrics: Sequence[str], width: int) -> Table:
    """The first rows, with these metrics."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    table.add_column(analysis.axes, no_wrap=True, max_width=width // 3)
    for metric in metrics:
        heading = f"{analysis.heading(metric)} {analysis.unit(metric)}".strip()
        table.add_column(heading, justify="right", no_wrap=True)
    for row in analysis.rows[:MOST_ROWS]:
        cells = [numbers.cell(analysis, metric, row, spread=False) for metric in metrics]
        table.add_row(printable(row), *cells)
    floors = [numbers.value(analysis.floor(metric), "%") for metric in metrics]
    if any(floor != numbers.MISSING for floor in floors):
        table.add_row(NOTHING_LEARNT, *floors, style="dim")
    return table


def _fits(console: Console, table: Table) -> bool:
    """Whether a table is not wider than the console, if nothing in it is broken or cut."""
    of_any_width = console.options.update(max_width=10_000)
    return Measurement.get(console, of_any_width, table).maximum <= console.width


def _metrics_that_fit(console: Console, analysis: Analysis) -> list[str]:
    """As many of the main metrics as a table has room for."""
    metrics = list(analysis.main)
    while not _fits(console, _table(analysis, metrics, console.width)):
        metrics.pop()
    return metrics


def _notes(analysis: Analysis, num_columns: int) -> str:
    """What the marks of a table with so many columns mean, and what it lacks."""
    shown = analysis.main[:num_columns]
    notes = [_seeds(analysis), wording.sizes(analysis)]
    if analysis.experiment.paper:
        notes.append("the paper's numbers in brackets")
    if any(metric in shown for metric, _ in analysis.by_probe):
        notes.append(f"{numbers.BY_PROBE} by a probe: the model has no head for it")
    hidden = {"column": len(analysis.main) - num_columns, "row": len(analysis.rows) - MOST_ROWS}
    for name, number in hidden.items():
        if number > 0:
            notes.append(f"{counted(number, f'more {name}')} in the report")
    return "; ".join(filter(None, notes))


def _claims_that_fit(console: Console, said: Said, room: int) -> Group:
    """A line a claim, as many as fit, and why nothing can be told of the first with a number, or of
    the first of all if none has one.
    """
    has_numbers = any(words.number for _, by_kind in said for words in by_kind.values())
    reasons = [
        Text(f"{wording.short(claim)}: {words.reason}", style="yellow")
        for claim, by_kind in said
        for words in by_kind.values()
        if words.reason and (words.number or not has_numbers)
    ]
    below = [Text(MEANINGS, style="dim"), *reasons[:1]]
    has_numbers = has_numbers and _fits(console, _claims(said, has_numbers=True))
    group = Group(_claims(said, has_numbers=has_numbers), *below)
    more = Text("and more in the report", style="dim")
    while said and len(console.render_lines(group)) > room:
        said = said[:-1]
        group = Group(_claims(said, has_numbers=has_numbers), more, *below)
    return group


def _claims(said: Said, *, has_numbers: bool) -> Table:
    """The verdicts on claims, in a column for each kind of evidence that there is."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    kinds = {kind for _, by_kind in said for kind in by_kind}
    columns = [column for column in COLUMNS if kinds.intersection(column)]
    for column in columns:
        first = next(kind for kind in column if kind in kinds)
        table.add_column(wording.KINDS[first], no_wrap=True)
    table.add_column("claim", max_width=LONGEST_SHORT)
    if has_numbers:
        table.add_column("asked", style="dim", no_wrap=True)
        table.add_column("measured", style="dim", no_wrap=True)
    for claim, by_kind in said:
        cells = []
        for column in columns:
            word = next((by_kind[kind].word for kind in column if kind in by_kind), "")
            cells.append(Text(word, style=f"bold {COLOURS.get(word, '')}"))
        cells.append(Text(wording.short(claim)))
        if has_numbers:
            measured = next((words for words in by_kind.values() if words.number), None)
            if measured:
                cells += [Text(measured.asked), Text(measured.number)]
        table.add_row(*cells)
    return table


def _seeds(analysis: Analysis) -> str:
    of_rows = analysis.summary["seeds"][analysis.summary.index.isin(analysis.rows, level="row")]
    counts = sorted({*of_rows.astype(int)}) or [0]
    ends = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return "one seed" if ends == "1" else f"mean of {ends} seeds"


def _paths(folder: Path) -> list[str]:
    """The report and its picture."""
    page = folder / (PAGE if (folder / PAGE).is_file() else REPORT)
    lines = [f"report   {from_here(page)}"]
    pictures = sorted(folder.glob("*.png"))
    return [*lines, *(f"picture  {from_here(picture)}" for picture in pictures[:1])]
