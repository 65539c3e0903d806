"""The last screen of a study: its answer, the paper's table beside ours, a line a claim, one
reason, two paths.
"""

import os
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tabulate import tabulate

from albert_lab.analysis.analysis import Analysis
from albert_lab.messages import printable
from albert_lab.report import numbers, wording
from albert_lab.report.report import PAGE, REPORT
from albert_lab.report.wording import Words
from albert_lab.studies.claims import LONGEST_SHORT, BaseClaim, Kind
from albert_lab.terminal.console import PlainConsole

LINES, WIDTH = 30, 100
MOST_ROWS = 9
WORD = 12  # characters of the column of a verdict
COLOURS = {"yes": "green", "NO": "red", "undecided": "yellow", "cannot tell": "dim"}
MEANINGS = {
    "undecided": "within the noise of so many claims",
    "cannot tell": "not measured or learnt",
    "": "not asked",
}


def show(folder: Path, analysis: Analysis) -> None:
    """Print the last screen of a study whose report is in a folder, plain where the output is no
    terminal.
    """
    # Not wider than the terminal; without one, as wide as it may be.
    width = min(WIDTH, PlainConsole().width) if sys.stdout.isatty() else WIDTH
    print_on(PlainConsole(width=width), folder, analysis)


def print_on(console: Console, folder: Path, analysis: Analysis) -> None:
    for part in screen(folder, analysis, console.width):
        console.print(part, soft_wrap=isinstance(part, Text))  # lines fit, except for a long path


def compared(a: Analysis, b: Analysis, table: pd.DataFrame) -> str:
    """The rows and scores of the main tables that two reports have: both means, and the second
    minus the first; at most LINES lines. Of tables that share none, all scores that both have.

    Args:
        table: as analysis.compare_summaries() gives it.
    """
    lines = []
    known = [name for name in a.metrics if name in table.index.get_level_values("metric")]
    for metric in [name for name in known if name in a.main and name in b.main] or known:
        unit = a.unit(metric)
        points = unit.replace("%", "points")
        for row in (row for row in a.rows if (metric, row) in table.index):
            line = table.loc[(metric, row)]
            means = [numbers.value(line[mean], unit) for mean in ("mean_a", "mean_b")]
            ends = [numbers.value(line[end], points) for end in ("low", "high")]
            interval = "" if numbers.MISSING in ends else f"[{', '.join(ends)}]"
            sign = "+" if line["difference"] > 0 else ""
            difference = f"{sign}{numbers.value(line['difference'], points)} {points}"
            heading = f"{a.heading(metric)} {unit}"
            lines.append([heading, printable(row), *means, difference, interval])
    header = ["score", "row", "A", "B", "B − A", "95 % interval"]
    text = tabulate(lines[: LINES - 3], header, tablefmt="simple", disable_numparse=True)
    hidden = len(lines) - LINES + 3
    return f"{text}\n{hidden} more with --json" if hidden > 0 else text


def screen(folder: Path, analysis: Analysis, width: int = WIDTH) -> list[Text | Table]:
    """The parts of the screen, at most LINES lines of this width in all."""
    name = analysis.experiment.title
    title = textwrap.wrap(
        f"{name}{'' if name[-1] in '.?!' else '.'} {wording.answer(analysis)}", width
    )
    counted = textwrap.wrap(wording.claims_counted(analysis), width)
    table, shown, rows_left = _table(analysis, width)
    below = _below(analysis, shown, rows_left, width)
    said = wording.claims_of(analysis)
    reason = _reason(said, width)
    paths = _paths(folder)
    fixed = [*title, *counted, *below, *reason, *paths, *analysis.rows[:MOST_ROWS]]
    lines = claims(said, width, LINES - len(fixed) - 5)  # the head of the table, empty lines
    parts: list[Text | Table] = [
        *(Text(line, style="bold") for line in title),
        *map(Text, counted),
        Text(),
        table,
    ]
    parts += [Text(line, style="dim") for line in below]
    parts += [Text(), *lines] if lines else []
    parts += [Text(line, style="yellow") for line in reason]
    return [*parts, Text(), *map(Text, paths)]


def _below(analysis: Analysis, shown: Sequence[str], rows_left: int, width: int) -> list[str]:
    """What the table's marks mean, and what it lacks."""
    columns_left = len(analysis.main) - len(shown)
    has_probe = any(metric in shown for metric, _ in analysis.by_probe)
    notes = [
        _seeds(analysis),
        wording.sizes(analysis),
        "the paper's numbers in brackets" if analysis.experiment.paper else "",
        f"{numbers.BY_PROBE} by a probe: the model has no head for it" if has_probe else "",
        f"{columns_left} more column{'s' * (columns_left > 1)}" if columns_left else "",
        f"{rows_left} more row{'s' * (rows_left > 1)}" if rows_left else "",
    ]
    text = "; ".join(filter(None, notes)) + (" in the report" if columns_left or rows_left else "")
    return textwrap.wrap(text, width)


def _table(analysis: Analysis, width: int) -> tuple[Table, list[str], int]:
    """The rows with as many metrics as fit, these metrics, and the number of rows that are left
    out.
    """
    rows = analysis.rows[:MOST_ROWS]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    table.add_column(_short(analysis.axes, width // 3), no_wrap=True)
    used = min(max(map(len, [analysis.axes, *rows])), width // 3)
    shown = list[str]()
    columns = list[list[str]]()
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
        table.add_row(_short(printable(row), width // 3), *(cells[place] for cells in columns))
    return table, shown, len(analysis.rows) - len(rows)


def claims(
    said: Sequence[tuple[BaseClaim, Mapping[Kind, Words]]], width: int, room: int
) -> list[Text]:
    """The lines of claims, below a heading, and what their verdicts mean; those without room are
    counted.
    """
    columns = _columns({kind for _, words in said for kind in words})
    if not columns:
        return []
    names = [textwrap.wrap(wording.short(claim), LONGEST_SHORT) for claim, _ in said]
    used = 1 + max(len(line) for name in names for line in name)
    heading = [heading.ljust(WORD) for heading in columns]
    lines = [Text(f"{''.join(heading)}{'claim'.ljust(used)}measured", style="dim")]
    verdicts = [
        [
            next((by_kind[kind].word for kind in kinds if kind in by_kind), "")
            for kinds in columns.values()
        ]
        for _, by_kind in said
    ]
    for words, name, (_, by_kind) in zip(verdicts, names, said, strict=True):
        text = Text()
        for word in words:
            text.append(word.ljust(WORD), style=f"bold {COLOURS.get(word, '')}")
        text.append(name[0].ljust(used))
        number = next((item.number for item in by_kind.values() if item.number), "")
        text.append(number if len(text) + len(number) <= width else "", style="dim")
        text.rstrip()
        lines += [text, *(Text(" " * WORD * len(columns) + line) for line in name[1:])]
    shown = {word for words in verdicts for word in words}
    meanings = "; ".join(
        f"{word or 'empty'}: {MEANINGS[word]}" for word in MEANINGS if word in shown
    )
    below = [Text(line, style="dim") for line in textwrap.wrap(meanings, width)]
    if len(lines) + len(below) > room:
        lines[max(0, room - len(below) - 1) :] = [Text("and more in the report", style="dim")]
    return [*lines, *below]


def _columns(kinds: Collection[Kind]) -> dict[str, list[Kind]]:
    """The headings of the columns of verdicts, and the kinds of evidence in each."""
    first = [kind for kind in (Kind.LOSS, Kind.NUMBER) if kind in kinds]
    columns = {"loss/number" if len(first) > 1 else wording.KINDS[first[0]]: first} if first else {}
    return columns | ({wording.KINDS[Kind.TASKS]: [Kind.TASKS]} if Kind.TASKS in kinds else {})


def _reason(said: Sequence[tuple[BaseClaim, Mapping[Kind, Words]]], width: int) -> list[str]:
    """Why nothing can be told of the first claim that has a number although nothing can."""
    for claim, by_kind in said:
        for words in by_kind.values():
            if words.reason and words.number:
                return textwrap.wrap(f"{wording.short(claim)}: {words.reason}", width)
    return []


def _seeds(analysis: Analysis) -> str:
    of_rows = analysis.summary["seeds"][analysis.summary.index.isin(analysis.rows, level="row")]
    counts = sorted({*of_rows.astype(int)}) or [0]
    ends = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return "one seed" if ends == "1" else f"mean of {ends} seeds"


def _paths(folder: Path) -> list[str]:
    """The report and its picture, relative to the current folder if they are below it."""
    picture = next(iter(sorted(folder.glob("*.png"))), None)
    files = {"report": folder / (PAGE if (folder / PAGE).is_file() else REPORT)}
    files |= {"picture": picture} if picture else {}
    here = Path.cwd()
    return [
        f"{name:9}{os.path.relpath(file) if file.is_relative_to(here) else file}"
        for name, file in files.items()
    ]


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
