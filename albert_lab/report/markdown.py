"""Tables, and numbers with their spread, as Markdown."""

import re
import statistics
from collections.abc import Collection, Iterable, Sequence

from tabulate import tabulate

from albert_lab.analysis.analysis import Analysis
from albert_lab.measures.catalog import probes
from albert_lab.score import LINEAR_PROBE, Score, loss_name
from albert_lab.studies.table import Column, Row, Spread, axis_labels, axis_names, paper_cells

MISSING = "—"
BY_PROBE = " †"
PROBE_NOTE = (
    "† By a linear probe, which is fitted on training pairs of the same task. The other rows use their own head as"
    " trained: compare such rows by their probes alone."
)
OF_SEVERAL_SETS = " ‡"
SETS_NOTE = (
    "‡ The rows are scored on different sets of questions, such as other text, tokens or masks: compare a score with"
    " the floors of its row, not with other rows."
)
_CODE_OR_TAG = re.compile(r"(`[^`\n|]+`)|(?<!\\)<(?=[a-zA-Z/!?])")
_NUMBER = re.compile(r"[-+±]?\d")  # also with a suffix: 81.2 ± 0.3, 4.7x, 12M, 8 (paper: 64)


def as_table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table; cells are printed unchanged, and columns of numbers are aligned to the right."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in body]
    are_numbers = [
        all(cell == MISSING or _NUMBER.match(cell) for cell in column) for column in zip(*cells, strict=True)
    ]
    align = ["right" if are else "left" for are in are_numbers]
    # Numbers are text: 81.30 must not become 81.3.
    return tabulate(
        cells, headers=list(header), tablefmt="pipe", disable_numparse=True, colalign=align if cells else None
    )


def escape_tags(text: str) -> str:
    """A Markdown text whose HTML tags, such as one in a title, are shown as they are written."""
    return _CODE_OR_TAG.sub(lambda match: match[1] or "\\<", text)


def fold(text: str, headings: Collection[str]) -> str:
    """A text in which the sections of these second-level headings are folded, as code hosts show them.

    This is its only HTML: its own tags are escaped.
    """
    opening, *sections = escape_tags(text).split("\n## ")
    parts = [opening.rstrip()]
    for section in sections:
        heading, _, body = section.partition("\n")
        if heading in headings:
            parts.append(f"<details>\n<summary>{heading}</summary>\n\n{body.strip()}\n\n</details>")
        else:
            parts.append(f"## {heading}\n{body.rstrip()}")
    return "\n\n".join(parts) + "\n"


def scores_table(analysis: Analysis, columns: Sequence[Column]) -> str:
    """A row as in the paper, our scores next to the paper's."""
    experiment, axes = analysis.experiment, analysis.axes
    shown = experiment.paper.columns if experiment.paper else {}
    header = [*axis_names(axes), "seeds"]
    for column in columns:
        several = "" if analysis.scores.is_of_one_set(analysis.rows, column.key) else OF_SEVERAL_SETS
        parts = f" ({'/'.join(column.parts)})" if column.parts else ""
        header.append(f"{column.heading} {column.unit}{parts}{several}")
        header += [f"paper {column.heading}"] if column.paper in shown else []
    body = []
    for row in analysis.rows:
        line = [*axis_labels(experiment, row, axes), _seeds(row, [column.key for column in columns])]
        cells = paper_cells(experiment, row)
        for column in columns:
            line.append(_score(row, column) + (BY_PROBE if _is_by_probe(row, column.key) else ""))
            line += [cells.get(column.paper, MISSING)] if column.paper in shown else []
        body.append(line)
    text = as_table(header, body)
    notes = {BY_PROBE: PROBE_NOTE, OF_SEVERAL_SETS: SETS_NOTE}
    return "\n\n".join([text, *(note for mark, note in notes.items() if mark in text)])


def losses_table(analysis: Analysis) -> str:
    """The losses on held-out documents, mean and spread over seeds; empty if no run has one."""
    axes = analysis.axes
    shown = [column for column in analysis.held_out if any(row.spread(loss_name(column.key)) for row in analysis.rows)]
    if not shown:
        return ""
    header = [*axis_names(axes), "seeds", *(f"{column.heading} loss" for column in shown)]
    body = []
    for row in analysis.rows:
        spreads = [row.spread(loss_name(column.key)) for column in shown]
        seeds = _seeds(row, [loss_name(column.key) for column in shown])
        body.append([*axis_labels(analysis.experiment, row, axes), seeds, *map(_loss, spreads)])
    return as_table(header, body)


def _seeds(row: Row, columns: Sequence[str]) -> str:
    """The number of runs with a score in the columns; "2 to 3" if it differs between columns."""
    counts = sorted({len(row.having(column)) for column in columns} - {0})
    return " to ".join(dict.fromkeys(str(count) for count in (counts[:1] + counts[-1:] or [0])))


def _loss(spread: Spread | None) -> str:
    if spread is None:
        return MISSING
    return f"{spread.mean:.3f}" + ("" if spread.sd is None else f" ± {spread.sd:.3f}")


def _is_by_probe(row: Row, key: str) -> bool:
    """Whether a score that other rows have from their head is from a probe here."""
    return key not in probes() and any(score.by == LINEAR_PROBE for run in row.runs if (score := run.scores.get(key)))


def _score(row: Row, column: Column) -> str:
    """Mean ± standard deviation over seeds, or a single seed's score with its interval; then its parts in brackets."""
    spread = row.spread(column.key)
    if spread is None:
        return MISSING
    text = decimal(spread.mean)
    if spread.sd is not None:
        text += f" ± {decimal(spread.sd)}"
    else:
        (run,) = row.having(column.key)
        score = run.scores.get(column.key)  # an average is the score of no run
        text = f"{text} {interval(score) if score else ''}".rstrip()
    parts = [part.mean for key in column.parts.values() if (part := row.spread(key))]
    return text + in_brackets(parts)


def in_brackets(parts: Sequence[float]) -> str:
    """The parts of a score after it, such as F1/EM; empty if it has none."""
    return f" ({'/'.join(map(decimal, parts))})" if parts else ""


def interval(score: Score) -> str:
    return "" if score.low is None or score.high is None else f"[{decimal(score.low)}, {decimal(score.high)}]"


def percent_interval(low: float, high: float) -> str:
    """The interval of a percentage, cut off where percentages end."""
    return f"[{decimal(max(low, 0.0))}, {decimal(min(high, 100.0))}]"


def decimal(value: float) -> str:
    """A number to one decimal, as scores in percent are printed."""
    return f"{value:.1f}"


def number(value: float) -> str:
    return f"{value:,.0f}"


def distinct(values: Iterable[object]) -> str:
    return "; ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in dict.fromkeys(values))


def mean_percent(shares: Iterable[float]) -> str:
    return f"{100 * statistics.fmean(shares):.1f} %"
