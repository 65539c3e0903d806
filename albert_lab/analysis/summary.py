"""What a table shows: the mean of each row over its seeds, with spread, interval, floors and the
paper's cell.
"""

from typing import Any

import numpy as np
import pandas as pd

from albert_lab.analysis.contrasts import contrast, counts
from albert_lab.analysis.frame import PAPER, Frame

COLUMNS = (
    "mean",
    "sd",
    "seeds",
    "low",
    "high",
    "n",
    "floor",
    "segments",
    "words",
    "paper",
    "counts",
)


def summary(frame: Frame) -> pd.DataFrame:
    """A line a metric and row, in the order of the study; the index is (metric, row).

    Columns: mean, and sd over seeds (NaN for one); seeds, their number; low and high, the 95 %
    interval of the mean by seeds and documents, with one spread pooled over the rows (contrasts.py;
    NaN if no row has several seeds); n, floor, segments and words as in Frame.numbers; paper, the
    paper's cell as printed (text; empty without one); counts, whether the metric says something
    about pre-training here (contrasts.counts).
    """
    cells: dict[str, dict[str, str]] = frame.rows.set_index("row").to_dict()
    numbers: Any = frame.numbers
    lines = []
    for metric, column in numbers.groupby("metric", sort=False):
        says_something, of_paper = counts(frame, metric), cells.get(PAPER + metric, {})
        for row, own in column.groupby("row", sort=False):
            interval, values = contrast(frame, metric, {row: 1.0}), own["value"]
            line = {
                "metric": metric,
                "row": row,
                "mean": values.mean(),
                "sd": values.std(),
                "seeds": len(values),
            }
            line |= {"low": interval.low, "high": interval.high, "counts": says_something}
            line |= own[["n", "floor", "segments", "words"]].mean().to_dict()
            lines.append(line | {"paper": of_paper.get(row, "")})
    return pd.DataFrame(lines, columns=pd.Index(["metric", "row", *COLUMNS])).set_index(
        ["metric", "row"]
    )


def compare(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Two summaries side by side, by metric and row: both means, and b minus a with its 95 %
    interval.
    """
    one, two = (
        table[["mean", "low", "high"]].add_suffix(end) for table, end in ((a, "_a"), (b, "_b"))
    )
    both: Any = one.join(two, how="inner")
    both["difference"] = both["mean_b"] - both["mean_a"]
    half = np.hypot(both["high_a"] - both["mean_a"], both["high_b"] - both["mean_b"])
    both["low"], both["high"] = both["difference"] - half, both["difference"] + half
    return both[["mean_a", "mean_b", "difference", "low", "high"]]
