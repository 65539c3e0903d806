"""Throughput relative to one row of a table."""

from collections.abc import Mapping, Sequence

from albert_lab.studies.table import Row

TRAINING, INFERENCE = "tokens_per_second", "inference_tokens_per_second"


def speedups(table: Sequence[Row], reference: Mapping[str, str], column: str = TRAINING) -> list[float | None]:
    """Tokens per second of each row over those of the reference row, means over seeds; None if either is missing.

    Args:
        table: rows of a report.
        reference: labels, by axis, of the row that the others are compared with.
        column: of the table of runs: TRAINING or INFERENCE.
    """
    speeds = [row.spread(column) for row in table]
    base = next(
        (speed for row, speed in zip(table, speeds, strict=True) if reference.items() <= row.labels.items()), None
    )
    return [None if base is None or speed is None else speed.mean / base.mean for speed in speeds]
