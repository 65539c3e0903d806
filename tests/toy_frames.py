"""Toy frames: numbers of rows over seeds, with or without documents, for tests of what reads a
frame.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from albert_lab.analysis.frame import CURVES, DOCUMENTS, NUMBERS, Frame

Values = Mapping[str, Sequence[float] | Mapping[int, float]]  # by row; a list is of seeds 0, 1, ...


def toy_frame(
    metrics: Mapping[str, Values],
    *,
    rows: pd.DataFrame | None = None,
    documents: Mapping[tuple[str, int, str], tuple[np.ndarray, np.ndarray]] | None = None,
    tasks: Mapping[str, str] | None = None,
    trunk: str = "",
    **scores: float,
) -> Frame:
    """A frame of rows by metric; the axis of rows is `axis` unless they are given.

    Args:
        documents: n and sum by document, by row, seed and metric.
        trunk: the name of the run that each run continues, with {} for the seed; empty: each is its
            own.
        scores: what all numbers have in common, such as floor.
    """
    lines, names = [], {}
    for metric, values in metrics.items():
        for row, sample in values.items():
            names[row] = row
            by_seed = sample if isinstance(sample, Mapping) else dict(enumerate(sample))
            place = {"row": row, "metric": metric, **scores}
            name = trunk or f"{row}-{{}}"
            for seed, value in by_seed.items():
                run = {
                    "run": f"{row}-{seed}",
                    "trunk": name.format(seed),
                    "seed": seed,
                    "value": value,
                }
                lines.append(run | place)
    table = rows if rows is not None else pd.DataFrame({"row": list(names), "axis": list(names)})
    kept = [
        pd.DataFrame(
            {
                "run": f"{row}-{seed}",
                "metric": metric,
                "document": range(len(n)),
                "n": n,
                "sum": right,
            }
        )
        for (row, seed, metric), (n, right) in (documents or {}).items()
    ]
    return Frame(
        pd.DataFrame(lines, columns=pd.Index(NUMBERS)),
        table,
        pd.concat(kept, ignore_index=True) if kept else pd.DataFrame(columns=pd.Index(DOCUMENTS)),
        pd.DataFrame(columns=pd.Index(CURVES)),
        pd.DataFrame(),
        tasks or {},
    )
