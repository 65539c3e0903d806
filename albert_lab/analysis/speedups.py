"""Throughput relative to one row of a table, and whether the speeds of rows can be compared."""

from collections.abc import Mapping, Sequence

from albert_lab.runs.results import TRAINING_SPEED
from albert_lab.studies.table import Row


def speedups(table: Sequence[Row], reference: Mapping[str, str], column: str = TRAINING_SPEED) -> list[float | None]:
    """Tokens per second of each row over those of the reference row; None if either is missing.

    Means over seeds.
    """
    speeds = [row.spread(column) for row in table]
    base = next(
        (speed for row, speed in zip(table, speeds, strict=True) if reference.items() <= row.labels.items()), None
    )
    return [None if base is None or speed is None else speed.mean / base.mean for speed in speeds]


def are_of_different_hardware(table: Sequence[Row]) -> bool:
    """Whether the speeds of rows cannot be compared: runs of one seed, or of any if seeds differ, ran on others."""
    by_seed: dict[int, set[str]] = {}
    for row in table:
        for run in row.runs:
            by_seed.setdefault(run.seed, set()).add(run.record.provenance.hardware)
    has_same_seeds = len({frozenset(run.seed for run in row.runs) for row in table}) == 1
    return any(len(names) > 1 for names in (by_seed.values() if has_same_seeds else [set().union(*by_seed.values())]))
