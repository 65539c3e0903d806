"""Two reports side by side: each row's numbers in A and in B, and their difference, with intervals."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from albert_lab.analysis.analysis import analyse
from albert_lab.analysis.statistics import estimate
from albert_lab.analysis.table_scores import TableScores
from albert_lab.errors import ConfigError
from albert_lab.report.markdown import MISSING, as_table
from albert_lab.report.templates import fill
from albert_lab.runs.results import RunRecord
from albert_lab.studies import study
from albert_lab.studies.experiment import AVERAGE, Experiment
from albert_lab.studies.table import Column, Row, RowNames

SPEED = "tokens_per_second"
# Settings in which two sets of results may differ.
SETTINGS: dict[str, Callable[[RunRecord], object]] = {
    "corpus": lambda run: run.config.corpus.name,
    "budget": lambda run: f"{run.config.budget.value:g} {run.config.budget.unit}",
    "num_layers": lambda run: run.config.model.num_layers,
    "hidden_size": lambda run: run.config.model.hidden_size,
    "vocab_size": lambda run: run.config.tokenizer.vocab_size,
    "max_sequence_length": lambda run: run.config.max_sequence_length,
    "batch_size": lambda run: run.config.batch_size,
    "masking": lambda run: run.config.masking.name,
    "optimizer": lambda run: run.config.optimizer.name,
    "learning_rate": lambda run: run.config.learning_rate,
    "corpus_fingerprint": lambda run: run.fingerprints["corpus"],
    "tokenizer_fingerprint": lambda run: run.fingerprints["tokenizer"],
    "evaluation_set": lambda run: run.evaluation_set,
    "results_version": lambda run: run.results_version,
    "albert_lab": lambda run: run.provenance.albert_lab,
    "commit": lambda run: run.provenance.code,
    "packages": lambda run: run.provenance.software,
    "machine": lambda run: run.provenance.machine,
    "threads": lambda run: run.provenance.threads,
    "devices": lambda run: run.provenance.device_names,
    "precision": lambda run: run.provenance.precision,
}


@dataclass(frozen=True)
class Cell:
    """A mean over n seeds with its 95 % interval: over seeds, or over the answers of a single seed; null if unknown."""

    value: float
    n: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ComparedRow:
    """One column of one row: in A, in B, and B - A; scores in percent. Over paired seeds, n counts the pairs.

    There is no difference between scores of two held-out sets.
    """

    row: str
    metric: str
    heading: str
    a: Cell | None
    b: Cell | None
    difference: Cell | None
    is_paired: bool


@dataclass(frozen=True)
class Sides:
    """Two report folders line by line, and the settings in which they differ, as in A and in B."""

    a: Path
    b: Path
    lines: tuple[ComparedRow, ...]
    differing: dict[str, tuple[str, str]]

    @property
    def has_one_set(self) -> bool:
        return MISSING in self.differing.get("evaluation_set", (MISSING,))


def compare(a: Path, b: Path) -> Sides:
    """Two report folders side by side, by the paper's labels of their rows.

    Raises:
        ConfigError: a folder is not a report, or the two have no row in common.
    """
    left, right = _read(a), _read(b)
    if not left.rows.keys() & right.rows.keys():
        had = [
            "; ".join(
                " ".join(f"{axis}={label}" for axis, label in row.labels.items()) or "one row without a label"
                for row in side.rows.values()
            )
            for side in (left, right)
        ]
        raise ConfigError(f"no row in common: {a} has {had[0]}, and {b} has {had[1]}")
    name = RowNames(left.experiment, [*left.rows.values(), *right.rows.values()])
    shown = headings([*left.columns, *right.columns]) | {SPEED: "tokens/s"}
    lines = [
        _line(name(left.rows.get(key, row).labels), column, heading, (left, right), key)
        for key, row in (left.rows | right.rows).items()
        for column, heading in shown.items()
    ]
    differing = {
        key: (ours, theirs)
        for key, ours, theirs in zip(left.settings, left.settings.values(), right.settings.values(), strict=True)
        if ours != theirs
    }
    if left.tasks != right.tasks and MISSING not in (left.tasks, right.tasks):
        differing["tasks"] = (left.tasks, right.tasks)
    return Sides(a, b, tuple(line for line in lines if line.a or line.b), differing)


@dataclass(frozen=True)
class _Side:
    experiment: Experiment
    rows: dict[frozenset[tuple[str, str]], Row]  # by their labels, in any order of the axes
    columns: list[Column]
    settings: dict[str, str]
    tasks: str  # that fill its downstream columns


def headings(columns: Iterable[Column]) -> dict[str, str]:
    """The heading of each column, with its unit."""
    return {column.key: f"{column.heading} {column.unit}" for column in columns}


def _read(folder: Path) -> _Side:
    analysis = analyse(study.read(folder))
    table = {frozenset(row.labels.items()): row for row in analysis.rows}
    settings = {"scale": analysis.study.scale}
    settings |= {key: _values(map(of, (run.record for run in analysis.finished))) for key, of in SETTINGS.items()}
    tasks = ", ".join(sorted(analysis.scores.columns.values())) or MISSING
    return _Side(analysis.experiment, table, [*analysis.held_out, *analysis.tasks], settings, tasks)


def _line(
    label: str, column: str, heading: str, both: tuple["_Side", "_Side"], key: frozenset[tuple[str, str]]
) -> ComparedRow:
    a, b = (side.rows.get(key) for side in both)
    left, right = (_cell(row, column) for row in (a, b))
    has_other_tasks = column == AVERAGE and both[0].tasks != both[1].tasks
    if a is None or b is None or left is None or right is None or has_other_tasks:
        return ComparedRow(label, column, heading, left, right, None, False)
    if not TableScores([a, b]).is_of_one_set([a, b], column):
        return ComparedRow(label, column, heading, left, right, None, False)
    sides = [(TableScores([row]), row) for row in (b, a)]
    step = max(scores.resolution(row, column) for scores, row in sides)
    samples = [scores.sample(row, column) for scores, row in sides]
    difference = estimate(samples, [1.0, -1.0], step)
    if difference.interval:
        return ComparedRow(
            label,
            column,
            heading,
            left,
            right,
            Cell(difference.value, difference.n, *difference.interval),
            difference.is_paired,
        )
    return ComparedRow(label, column, heading, left, right, newcombe(left, right), False)


def _cell(row: Row | None, column: str) -> Cell | None:
    if row is None or not (values := TableScores([row]).sample(row, column)):
        return None
    estimate = TableScores([row]).estimate([(1.0, row)], column)
    if estimate.interval:
        return Cell(estimate.value, estimate.n, *estimate.interval)
    score = next(run for run in row.runs if run.seed in values).scores.get(column)
    return Cell(estimate.value, estimate.n, score.low, score.high) if score else Cell(estimate.value, estimate.n)


def newcombe(a: Cell, b: Cell) -> Cell:
    """B - A, with Newcombe's interval of a difference of two shares if each has a single seed.

    Source: Newcombe 1998, Statistics in Medicine 17, method 10: each side's distance to its own bound.
    """
    value = b.value - a.value
    bounds = (a.low, a.high, b.low, b.high)
    if a.n > 1 or b.n > 1 or any(bound is None for bound in bounds):
        return Cell(value, min(a.n, b.n))
    a_low, a_high, b_low, b_high = (bound for bound in bounds if bound is not None)
    low = value - math.hypot(b.value - b_low, a_high - a.value)
    high = value + math.hypot(b_high - b.value, a.value - a_low)
    return Cell(value, 1, low, high)


def _values(values: Iterable[object]) -> str:
    return ", ".join(sorted({MISSING if value is None else str(value) for value in values})) or MISSING


def as_text(sides: Sides) -> str:
    header = ["row", "", "A", "B", "B − A", "n of A, B"]
    body = []
    for line in sides.lines:
        seeds = ", ".join(MISSING if cell is None else str(cell.n) for cell in (line.a, line.b))
        cells = [_shown(line.a, line.metric), _shown(line.b, line.metric)]
        difference = _shown(line.difference, line.metric, signed=True) + (" paired" if line.is_paired else "")
        body.append([line.row, line.heading, *cells, difference, seeds])
    differing = [[setting, *values] for setting, values in sides.differing.items()]
    return fill(
        "compare.md.j2",
        sides=sides,
        table=as_table(header, body),
        differing=differing and as_table(["setting", "A", "B"], differing),
    ).strip()


def _shown(cell: Cell | None, column: str, *, signed: bool = False) -> str:
    if cell is None:
        return MISSING
    form = f"{'+' if signed else ''}{',.0f' if column == SPEED else '.1f'}"
    text = format(cell.value, form)
    if cell.low is not None and cell.high is not None:
        text += f" [{format(cell.low, form)}, {format(cell.high, form)}]"
    return text


def as_json(sides: Sides) -> str:
    """A comparison as one JSON document; missing values are null."""
    content: Mapping[str, object] = {
        "a": str(sides.a),
        "b": str(sides.b),
        "same_held_out_set": sides.has_one_set,
        "differing": {setting: {"a": a, "b": b} for setting, (a, b) in sides.differing.items()},
        "lines": [asdict(line) for line in sides.lines],
    }
    return json.dumps(content, indent=2)
