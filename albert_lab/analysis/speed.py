"""Training throughput relative to one row of a table."""

from collections.abc import Mapping, Sequence

from albert_lab.analysis.tables import Row


def speedups(table: Sequence[Row], reference: Mapping[str, str]) -> list[float | None]:
    """Pieces a second of each row over those of the reference row, means over seeds; None where either has no run.

    Args:
        table: rows of a report.
        reference: labels, by axis, of the row that the others are compared with.
    """
    speeds = [row.spread("tokens_per_second") for row in table]
    base = next(
        (speed for row, speed in zip(table, speeds, strict=True) if reference.items() <= row.labels.items()), None
    )
    return [None if base is None or speed is None else speed.mean / base.mean for speed in speeds]
