"""Two reports side by side: a merge of their summaries."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from albert_lab.analysis.analysis import read


def compare(a: Path, b: Path) -> tuple[pd.DataFrame, bool]:
    """The means of two reports by metric and row, b minus a with its 95 % interval, and whether both have one text.

    Raises:
        ConfigError: a folder is no report, or a file in it cannot be read.
    """
    both = [read(folder) for folder in (a, b)]
    one, two = (
        study.summary[["mean", "low", "high"]].add_suffix(end) for study, end in zip(both, ("_a", "_b"), strict=True)
    )
    table: Any = one.join(two, how="inner")
    table["difference"] = table["mean_b"] - table["mean_a"]
    half = np.hypot(table["high_a"] - table["mean_a"], table["high_b"] - table["mean_b"])
    table["low"], table["high"] = table["difference"] - half, table["difference"] + half
    sets = {run.record.evaluation_set for study in both for run in study.study.runs}
    return table[["mean_a", "mean_b", "difference", "low", "high"]], len(sets) == 1
