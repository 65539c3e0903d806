"""Weighted sums of row means, with intervals and tests over seeds and held-out documents."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as t_distribution

from albert_lab.analysis.frame import RANDOM, Frame
from albert_lab.runs.reported import AVERAGE, AVERAGED

LEVEL = 0.95


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of row means in the unit of the metric; of their logarithms if log.

    Attributes:
        effect: the sum.
        low, high: its 95 % interval over seeds and documents; NaN if no row has several seeds.
        p: the one-sided p-value of the true sum being at most the bound; NaN without an interval.
        p_against: that of its being at least the bound.
    """

    effect: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_against: float = math.nan


def contrast(
    frame: Frame, metric: str, weights: Mapping[str, float], bound: float = 0, *, log: bool = False, alone: bool = False
) -> Contrast:
    """A weighted sum of row means: {"sop": 1, "nsp": -1} is their difference, {"sop": 1} a level.

    One variance over seeds is pooled over all rows that have the metric (least squares). If the weights sum to 0 and
    the rows share most of their seeds, what a seed has in common over all rows is no part of it. The variance over the
    held-out documents, that of the rows' weighted errors by document (a ratio estimator), is added, with the degrees of
    freedom of Welch and Satterthwaite. Rows of the same runs count once.

    Args:
        weights: by the names of rows that have values of the metric.
        bound: what the p-values are about.
        log: sum the logarithms of values, so that the effect is that of a ratio; NaN if a value is not above 0.
        alone: where no row has several seeds, give the interval over documents: that of these models alone.

    Raises:
        KeyError: a row without a value of the metric.
    """
    column: Any = frame.of(metric)
    runs: dict[str, tuple[str, ...]] = {}
    for row, run in zip(column["row"], column["run"], strict=True):
        runs[row] = (*runs.get(row, ()), run)
    first = {same: row for row, same in reversed(runs.items())}
    of_rows: dict[str, float] = {}
    for row, weight in weights.items():
        place = first[runs[row]]
        of_rows[place] = of_rows.get(place, 0.0) + weight
    column = column[column["row"].isin(list(first.values()))]
    if log and (column["value"] <= 0).any():
        return Contrast(math.nan)
    effect, variance, df = _over_seeds(column, of_rows, log=log)
    parts = [(variance, df), *_over_documents(frame, metric, runs, of_rows, log=log)]
    parts = (parts[1:] or parts) if alone and not df else parts
    total = sum(part for part, _ in parts)
    if math.isnan(total):
        return Contrast(effect)
    if math.sqrt(total) <= 1e-9 * (1.0 if log else float(column["value"].abs().max())):  # exact, as parameters are
        return Contrast(effect, effect, effect, float(effect <= bound), float(effect >= bound))
    joint = total**2 / sum(part**2 / of_part for part, of_part in parts)
    low, high = t_distribution.interval(LEVEL, joint, effect, math.sqrt(total))
    t = (effect - bound) / math.sqrt(total)
    p, p_against = float(t_distribution.sf(t, joint)), float(t_distribution.cdf(t, joint))
    return Contrast(effect, float(low), float(high), p, p_against)


def _over_seeds(column: Any, weights: Mapping[str, float], *, log: bool) -> tuple[float, float, float]:
    """A contrast by least squares on rows, and on seeds if paired: its value, variance and df."""
    from statsmodels.regression.linear_model import OLS

    row, seed = column["row"].to_numpy(object), column["seed"].to_numpy(int)
    seeds = [set(seed[row == name]) for name in weights]
    shared, rows = set.intersection(*seeds), sorted(set(row))
    design = (row[:, None] == np.array(rows, object)).astype(float)
    is_random = any(name.endswith(RANDOM) for name in weights)  # one model, of no seed of pre-training
    if abs(sum(weights.values())) < 1e-9 and 2 * len(shared) > max(map(len, seeds)) and not is_random:
        of_seeds = (seed[:, None] == np.unique(seed)).astype(float)
        design = np.column_stack([design, of_seeds[:, :-1] - of_seeds[:, -1:]])
    vector = np.zeros(design.shape[1])
    vector[: len(rows)] = [weights.get(name, 0.0) for name in rows]
    values = column["value"].to_numpy(float)
    fit: Any = OLS(np.log(values) if log else values, design).fit()
    effect = round(float(vector @ fit.params), 9) + 0.0  # no -0.0 for equal means
    if fit.df_resid <= 0:
        return effect, math.nan, 0.0
    return effect, float(vector @ fit.cov_params() @ vector), float(fit.df_resid)


def _over_documents(
    frame: Frame, metric: str, runs: Mapping[str, Sequence[str]], weights: Mapping[str, float], *, log: bool
) -> list[tuple[float, float]]:
    """The variances of a contrast over the documents that its rows were scored on, each with its degrees of freedom.

    One for rows that were scored on the same text; of several texts, and of the tasks of an average, one each. Empty if
    the answers of a row were not kept by document.
    """
    members = AVERAGED if metric == AVERAGE else (metric,)
    column: Any = frame.of(metric)
    values = dict(zip(column["run"], column["value"], strict=True))
    errors: dict[tuple[str, bytes], np.ndarray] = {}
    for member in members:
        kept = frame.documents_of(member)
        scale = (1.0 if member.endswith("_loss") else 100.0) / len(members)
        for row, weight in weights.items():
            for run in runs[row]:
                if run not in kept:
                    return []
                n, right = kept[run]
                by = scale / values[run] if log else scale
                error = weight / len(runs[row]) * by * (right - right.sum() / n.sum() * n) / n.sum()
                text = (member, n.tobytes())
                errors[text] = errors.get(text, 0.0) + error
    numbers = [(error, np.count_nonzero(np.frombuffer(n))) for (_, n), error in errors.items()]
    return [(float(count / (count - 1) * (error**2).sum()), count - 1.0) for error, count in numbers if count > 1]


def counts(frame: Frame, metric: str) -> bool:
    """Whether a score says something about pre-training here: losses and scores on held-out text do.

    A task does if the mean of its best row, of those with random weights of the same shape beside them, is above these
    and, where there are any (not of spans), above words alone, with 95 % intervals that exclude them (of one seed: over
    examples). The average does if all do.
    """
    if metric == AVERAGE:
        return all(counts(frame, task) for task in AVERAGED)
    task = frame.tasks.get(metric)
    if task is None:
        return True
    column: Any = frame.of(task)
    means = column[(column["row"] + RANDOM).isin(column["row"])].groupby("row")["value"].mean()
    if means.empty:
        return False
    best = str(means.idxmax())
    words = float(column["words"].astype(float).max())  # NaN of spans
    is_above_words = math.isnan(words) or contrast(frame, task, {best: 1.0}, alone=True).low > words
    return is_above_words and contrast(frame, task, {best: 1.0, best + RANDOM: -1.0}, alone=True).low > 0


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted by Holm's step-down procedure, in the given order; NaN stays and does not count."""
    # Not by statsmodels, whose function collects all garbage of the process at each call.
    adjusted = np.array(p_values, float)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]
    adjusted[order] = np.minimum(1, np.maximum.accumulate(adjusted[order] * np.arange(len(order), 0, -1)))
    return adjusted.tolist()
