"""Means, intervals, tests and power over a few seeds, with a spread pooled over the rows of a table."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, variance
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import nctdtr, stdtr, stdtrit

LEVEL = 0.95
POWER = 0.8
MOST_SEEDS = 1_000

Sample = Mapping[int, float]  # a value by seed


@dataclass(frozen=True)
class Estimate:
    """A weighted sum of row means with its standard error; error and df are None if no row has several seeds.

    Attributes:
        value: the sum.
        n: number of seeds: those that its rows share if paired, else those of its smallest row.
        is_paired: whether the error excludes effects that a seed has on all rows.
        error: the standard error over seeds and, if known, over examples.
        df: the degrees of freedom of error.
        example_error: the share of error that more seeds do not reduce.
    """

    value: float
    n: int
    is_paired: bool
    error: float | None = None
    df: float | None = None
    example_error: float = 0.0

    @property
    def interval(self) -> tuple[float, float] | None:
        if self.error is None or self.df is None:
            return None
        reach = float(stdtrit(self.df, (1 + LEVEL) / 2)) * self.error
        return self.value - reach, self.value + reach

    def above(self, bound: float) -> float:
        """The one-sided p-value of the true value being at most bound, by t; 1 without an error."""
        return self._tail(self.value - bound)

    def below(self, bound: float) -> float:
        """The one-sided p-value of the true value being at least bound, by t; 1 without an error."""
        return self._tail(bound - self.value)

    def _tail(self, distance: float) -> float:
        if self.error is None or self.df is None:
            return 1.0
        t = distance / self.error if self.error else math.copysign(math.inf, distance) if distance else 0.0
        return float(stdtr(self.df, -t))

    def with_examples(self, variance_of_examples: float, df: float) -> "Estimate":
        """The estimate with the noise of the examples added (Satterthwaite).

        Args:
            variance_of_examples: the squared standard error due to the choice of examples.
            df: its degrees of freedom.
        """
        if self.error is None or self.df is None or not variance_of_examples:
            return self
        total = self.error**2 + variance_of_examples
        joint = total**2 / (self.error**4 / self.df + variance_of_examples**2 / df)
        example_error = math.sqrt(self.example_error**2 + variance_of_examples)
        return replace(self, error=math.sqrt(total), df=joint, example_error=example_error)

    def with_seeds(self, n: int) -> tuple[float, float]:
        """The standard error, and its degrees of freedom, that n seeds would have with the same spread."""
        assert self.error is not None
        assert self.df is not None
        over_seeds = (self.error**2 - self.example_error**2) * self.n / n
        return math.sqrt(over_seeds + self.example_error**2), self.df * (n - 1) / (self.n - 1)


class PooledSpread:
    """The spread over seeds in one column of a table, estimated from all its rows together.

    Two linear models by least squares: rows and seeds as factors, for comparisons of rows that share their seeds; and
    rows alone, for the level of a row and for rows of other seeds. One variance is pooled over the rows. A row with
    a larger variance adds the excess, with the row's degrees of freedom. The variance of a comparison is the sum of
    these parts, with Satterthwaite's degrees of freedom. So a row with a large spread only widens its comparisons, and
    rows of equal spread have the many degrees of freedom of the table.
    """

    def __init__(self, samples: Sequence[Sample], resolution: float = 0.0) -> None:
        """Fit both models.

        Args:
            samples: for each row a value by seed, at least one.
            resolution: the smallest change of a value, such as that of one answer. Identical scores do not imply zero
                variance: the variance of a value is at least that of rounding to this step.
        """
        assert all(samples)
        self._samples = [dict(sample) for sample in samples]
        self._rounding = resolution**2 / 12
        cells = [(row, seed) for row, sample in enumerate(samples) for seed in sample]
        seeds = sorted({seed for _, seed in cells})
        self._values = np.array([samples[row][seed] for row, seed in cells])
        self._row_of = np.array([row for row, _ in cells])
        rows = np.eye(len(samples))[self._row_of]
        design = rows
        for column in np.eye(len(seeds))[[seeds.index(seed) for _, seed in cells]].T:
            wider = np.column_stack([design, column])
            if np.linalg.matrix_rank(wider) == wider.shape[1]:
                design = wider
        self._of_rows = _Fit(rows, self._values, self._row_of)
        self._of_both = _Fit(design, self._values, self._row_of)

    def estimate(self, weights: Mapping[int, float]) -> Estimate:
        """A weighted sum of row means.

        Paired by seed if the weights sum to 0 and the rows share more than half of the seeds of the smallest row.

        Args:
            weights: by the index of the row in the samples.
        """
        chosen = [self._samples[row] for row in weights]
        shared = set.intersection(*map(set, chosen))
        smallest = min(map(len, chosen))
        is_contrast = len(weights) > 1 and math.isclose(sum(weights.values()), 0.0, abs_tol=1e-9)
        is_paired = is_contrast and 2 * len(shared) > smallest and self._of_both.df > 0
        n = len(shared) if is_paired else smallest
        fit = self._of_both if is_paired else self._of_rows
        combination = fit.combination(weights)
        value = round(float(combination @ self._values), 9) + 0.0  # no -0.0 for equal means
        if n < 2 or fit.df <= 0:
            return Estimate(value, n, is_paired)
        pooled = max(fit.variance, self._rounding)
        parts = [(pooled * float(combination @ combination), fit.df if is_paired else self._df_of_levels)]
        for row in weights:
            excess = fit.own_variances[row] - pooled
            if excess > 0 and len(self._samples[row]) > 1:
                own = combination[self._row_of == row]
                parts.append((excess * float(own @ own), len(self._samples[row]) - 1.0))
        total, most = sum(part for part, _ in parts), parts[0][1]
        df = min(most, total**2 / sum(part**2 / of_part for part, of_part in parts)) if total else most
        return Estimate(value, n, is_paired, math.sqrt(total), float(df))

    @cached_property
    def _df_of_levels(self) -> float:
        """The degrees of freedom of the variance within rows, including the common variance of seeds."""
        common = self._of_rows.sum_of_squares - self._of_both.sum_of_squares, self._of_rows.df - self._of_both.df
        rest = self._of_both.sum_of_squares, self._of_both.df
        squares = [(total, df) for total, df in (common, rest) if df > 0 and total > 0]
        if not squares:
            return self._of_rows.df
        return sum(total for total, _ in squares) ** 2 / sum(total**2 / df for total, df in squares)


class _Fit:
    """Least squares of values on a design whose first columns are the rows."""

    def __init__(self, design: np.ndarray, values: np.ndarray, row_of: np.ndarray) -> None:
        from statsmodels.regression.linear_model import OLS

        fitted: Any = OLS(values, design).fit()
        self._design, self._inverse = design, fitted.model.pinv_wexog  # [observations, columns] and its pseudo-inverse
        self._residuals, self._row_of = fitted.resid, row_of
        self.df = float(fitted.df_resid)
        self.sum_of_squares = float(fitted.ssr)

    @property
    def variance(self) -> float:
        return self.sum_of_squares / self.df

    def combination(self, weights: Mapping[int, float]) -> np.ndarray:
        """The weights of the observations in a weighted sum of row effects. [observations]"""
        contrast = np.zeros(self._design.shape[1])
        for row, weight in weights.items():
            contrast[row] = weight
        return self._inverse.T @ contrast

    @cached_property
    def own_variances(self) -> np.ndarray:
        """An unbiased estimate of the variance of each row, by moments of its residuals (MINQUE). [rows]

        The expected sum of squared residuals of a row is a weighted sum of the variances of all rows; the system is
        solved for these, with least norm if it is singular. With two rows it is, and both get the same variance.
        """
        maker = np.eye(len(self._residuals)) - self._design @ self._inverse  # of residuals from values
        rows = np.eye(self._row_of.max() + 1)[self._row_of]
        return np.linalg.pinv(rows.T @ maker**2 @ rows) @ (rows.T @ self._residuals**2)


def estimate(samples: Sequence[Sample], weights: Sequence[float] = (1.0,), resolution: float = 0.0) -> Estimate:
    """The weighted sum of the means of samples, with a spread pooled over these samples only.

    Args:
        samples: each a value by seed, at least one.
        weights: one per sample.
        resolution: as in PooledSpread.
    """
    assert len(samples) == len(weights)
    return PooledSpread(samples, resolution).estimate(dict(enumerate(weights)))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted by Holm's step-down procedure, in the given order."""
    # Not statsmodels' multipletests: it collects garbage in every call, and simulations make thousands.
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def power(error: float, df: float, distances: Iterable[float], alpha: float) -> float:
    """The probability that a true value is shown to be within bounds at these distances from it.

    Each side is tested by t at alpha / 2. With two sides it is a lower bound, by Bonferroni.
    """
    finite = [distance for distance in distances if math.isfinite(distance)]
    if error == 0:
        return float(all(distance > 0 for distance in finite))
    critical = stdtrit(df, 1 - alpha / 2)
    misses = [float(nctdtr(df, distance / error, critical)) for distance in finite]
    # The non-central t is NaN for a far centre, where the probability of a miss is 0.
    return max(0.0, 1 - sum(miss for miss in misses if not math.isnan(miss)))


def detectable(error: float, df: float, alpha: float, bounds: int = 1) -> float:
    """The smallest distance of a true value from each of its bounds that is shown with POWER, at a standard error."""

    def lacking(errors: float) -> float:
        return power(1.0, df, [errors] * bounds, alpha) - POWER

    root: Any = brentq(lacking, 0.0, 2 * float(stdtrit(df, 1 - alpha / 2)) + 10)
    return error * float(root)


def seeds_needed(effect: Estimate, distances: Iterable[float], alpha: float) -> int | None:
    """The least number of seeds, at least 3, with POWER at the measured spread; None if MOST_SEEDS are not enough."""
    known = list(distances)

    def reached(n: int) -> bool:
        return power(*effect.with_seeds(n), known, alpha) >= POWER

    numbers = range(3, MOST_SEEDS + 1)
    place = bisect_left(numbers, True, key=reached)
    return numbers[place] if place < len(numbers) else None


@dataclass(frozen=True)
class Components:
    """The spread by its sources: sd between pre-trainings without the noise of fine-tuning, and sd of fine-tuning.

    pretraining is None for a single run. finetuning is None if no run has two fine-tunings; pretraining then includes
    both.
    """

    pretraining: float | None
    finetuning: float | None
    runs: int
    finetunings: int


def components(values: Iterable[Sequence[float]]) -> Components:
    """The two sources of spread of a score, from its fine-tunings run by run (one-way random effects, by moments).

    If fine-tuning alone explains the spread between runs, that of pre-training is 0.
    """
    runs = [list(run) for run in values if len(run)]
    degrees = sum(len(run) - 1 for run in runs)
    within = sum(variance(run) * (len(run) - 1) for run in runs if len(run) > 1) / degrees if degrees else None
    between = None
    if len(runs) > 1:
        noise = (within or 0.0) * fmean(1 / len(run) for run in runs)
        between = math.sqrt(max(0.0, variance([fmean(run) for run in runs]) - noise))
    return Components(between, None if within is None else math.sqrt(within), len(runs), sum(map(len, runs)))
