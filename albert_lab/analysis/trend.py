"""The difference of two rows against compute, over the rungs of a study that repeats it at several scales."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from albert_lab.analysis.contrasts import Contrast, contrast
from albert_lab.analysis.frame import Frame
from albert_lab.studies.claims import Labels

COLUMNS = ("rung", "flops", "effect", "low", "high")


@dataclass(frozen=True)
class Trend:
    """A straight line through the effects of rungs, against the logarithm of compute.

    Attributes:
        points: a line a rung: rung (its label), flops (of training a run, mean over the runs of both rows), effect
            (in points for scores), and low and high, its 95 % interval.
        slope: the change of the effect for ten times the compute, with its interval and p-values against 0; NaN
            for fewer than three rungs with an interval.
        at_one: the line at one FLOP, so that an effect is at_one + slope.effect * log10(FLOPs).
    """

    points: pd.DataFrame
    slope: Contrast
    at_one: float = math.nan


def trend(frame: Frame, metric: str, row: Labels, than: Labels, axis: str = "rung") -> Trend:
    """The effect row minus than of a metric at each rung, and its trend by weighted least squares.

    Each effect is estimated from the rows of its rung alone and weighs the inverse of its variance over seeds and
    documents; that of the line is estimated from the distances to it.

    Args:
        row, than: labels of the other axes.
    """
    points = [_point(frame, metric, rung, (row, than), axis) for rung in frame.rows[axis].drop_duplicates()]
    table = pd.DataFrame([point for point in points if point], columns=pd.Index(COLUMNS))
    known: Any = table[table["high"] > table["low"]]
    if known["flops"].nunique() < 3:
        return Trend(table, Contrast(math.nan))
    from statsmodels.regression.linear_model import WLS

    logarithms = np.log10(known["flops"].to_numpy(float))
    design = np.column_stack([np.ones(len(known)), logarithms])
    weights = 1 / (known["high"] - known["low"]).to_numpy(float) ** 2
    fit: Any = WLS(known["effect"].to_numpy(float), design, weights).fit()
    (_, (low, high)), p = fit.conf_int(), float(fit.pvalues[1]) / 2
    above, below = (p, 1 - p) if fit.params[1] > 0 else (1 - p, p)
    return Trend(table, Contrast(float(fit.params[1]), float(low), float(high), above, below), float(fit.params[0]))


def _point(
    frame: Frame, metric: str, rung: str, rows: tuple[Labels, Labels], axis: str
) -> Mapping[str, float | str] | None:
    """The effect at a rung; None if one of the rows has no run there."""
    names = [frame.row({**labels, axis: rung}) for labels in rows]
    members: Any = frame.rows.loc[frame.rows[axis] == rung, "row"]
    numbers: Any = frame.numbers
    of_rung = replace(frame, numbers=numbers[numbers["row"].isin(members)])
    known = set(of_rung.of(metric)["row"])
    if not all(name in known for name in names):
        return None
    first, second = map(str, names)
    found = contrast(of_rung, metric, {first: 1.0, second: -1.0})
    return {"rung": rung, "flops": _flops(numbers, names), "effect": found.effect, "low": found.low, "high": found.high}


def _flops(numbers: Any, rows: list[str | None]) -> float:
    """The FLOPs of training a run, mean over the runs of some rows."""
    of_rows = numbers[numbers["row"].isin(rows)].pivot_table(index=["row", "run"], columns="metric", values="value")
    return float((of_rows["train_flops_per_token"] * of_rows["tokens"]).mean())
