"""Means, intervals, tests and power over seeds, for a handful of seeds as for many."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

import numpy as np
from scipy.special import nctdtr, stdtr, stdtrit

LEVEL = 0.95
# Below, the bootstrap is far too narrow: at n = 3 its 95 % interval holds the mean in fewer than 3 samples of 4.
BOOTSTRAP_FROM = 10
RESAMPLES = 9_999
POWER = 0.8
MOST_SEEDS = 1_000

Sample = Mapping[int, float]  # a value by seed


@dataclass(frozen=True)
class Estimate:
    """A combination of row means over seeds, with its 95 % interval; sd, df and interval are None for a single seed.

    sd is what one seed adds, so that the standard error is sd / sqrt(n); df are the degrees of freedom of its t.
    """

    value: float
    n: int
    is_paired: bool
    sd: float | None = None
    df: float | None = None
    interval: tuple[float, float] | None = None

    def above(self, bound: float) -> float:
        """The one-sided p-value of the true value being at most bound, by t; 1 for a single seed."""
        return self._tail(self.value - bound)

    def below(self, bound: float) -> float:
        """The one-sided p-value of the true value being at least bound, by t; 1 for a single seed."""
        return self._tail(bound - self.value)

    def _tail(self, distance: float) -> float:
        if self.sd is None or self.df is None:
            return 1.0
        error = self.sd / math.sqrt(self.n)
        t = distance / error if error else math.copysign(math.inf, distance) if distance else 0.0
        return float(stdtr(self.df, -t))


def estimate(samples: Sequence[Sample], weights: Sequence[float] = (1.0,), resolution: float = 0.0) -> Estimate:
    """The weighted sum of the samples' means, with its interval.

    Paired by seed over the seeds that all samples have, where these are more than half of the smallest sample; by Welch
    otherwise, and then n is the size of the smallest sample. The interval is Student's t below BOOTSTRAP_FROM seeds
    and BCa from there on.

    Args:
        samples: at least one value each.
        weights: one a sample.
        resolution: the step in which values can move, such as one answer more or less. Seeds that agree to the step
            do not prove that there is no spread, so the sd is at least that of rounding to it.
    """
    assert len(samples) == len(weights)
    assert all(samples)
    shared = sorted(set.intersection(*(set(sample) for sample in samples)))
    rounding = resolution * math.sqrt(sum(weight**2 for weight in weights) / 12)
    if 2 * len(shared) > min(map(len, samples)):
        values = [sum(w * sample[seed] for w, sample in zip(weights, samples, strict=True)) for seed in shared]
        return _paired(values, len(samples) > 1, rounding)
    return _welch([list(sample.values()) for sample in samples], weights, rounding)


def _paired(values: Sequence[float], is_paired: bool, rounding: float) -> Estimate:
    n, value = len(values), fmean(values)
    if n == 1:
        return Estimate(value, n, is_paired)
    spread = stdev(values)
    sd = max(spread, rounding)
    if n >= BOOTSTRAP_FROM and spread >= sd > 0:
        interval = _bootstrap([values], [1.0])
    else:
        interval = _student(value, sd / math.sqrt(n), n - 1)
    return Estimate(value, n, is_paired, sd, n - 1, interval)


def _welch(samples: Sequence[Sequence[float]], weights: Sequence[float], rounding: float) -> Estimate:
    """By Welch and Satterthwaite, for any linear combination of means."""
    n = min(map(len, samples))
    value = sum(weight * fmean(sample) for weight, sample in zip(weights, samples, strict=True))
    if n == 1:
        return Estimate(value, n, False)
    parts = [w**2 * variance(sample) / len(sample) for w, sample in zip(weights, samples, strict=True)]
    spread = math.sqrt(sum(parts) * n)
    sd = max(spread, rounding)
    df = float(n - 1)
    if sum(parts):
        df = sum(parts) ** 2 / sum(part**2 / (len(sample) - 1) for part, sample in zip(parts, samples, strict=True))
    if n >= BOOTSTRAP_FROM and spread >= sd > 0:
        interval = _bootstrap(samples, weights)
    else:
        interval = _student(value, sd / math.sqrt(n), df)
    return Estimate(value, n, False, sd, df, interval)


def _student(value: float, error: float, df: float) -> tuple[float, float]:
    reach = float(stdtrit(df, (1 + LEVEL) / 2)) * error
    return value - reach, value + reach


def _bootstrap(samples: Sequence[Sequence[float]], weights: Sequence[float]) -> tuple[float, float]:
    from scipy.stats import bootstrap

    def combine(*resampled: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(sum(w * sample.mean(axis=axis) for w, sample in zip(weights, resampled, strict=True)))

    found = bootstrap(
        samples,
        combine,
        n_resamples=RESAMPLES,
        vectorized=True,
        confidence_level=LEVEL,
        method="BCa",
        rng=np.random.Generator(np.random.Philox(key=len(samples))),
    ).confidence_interval
    return float(found.low), float(found.high)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number by Holm's step-down procedure, in the order given."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def power(n: int, sd: float, distances: Iterable[float], alpha: float) -> float:
    """The chance that n seeds show a true value to be on the right side of bounds at these distances from it.

    Each side is tested by t at alpha / 2. A lower bound, by Bonferroni, where there are two sides.
    """
    finite = [distance for distance in distances if math.isfinite(distance)]
    if sd == 0:
        return float(all(distance > 0 for distance in finite))
    critical = stdtrit(n - 1, 1 - alpha / 2)
    misses = [float(nctdtr(n - 1, distance * math.sqrt(n) / sd, critical)) for distance in finite]
    # The non-central t is NaN where the centre is far off; there the chance of a miss is 0 all the same.
    return max(0.0, 1 - sum(miss for miss in misses if not math.isnan(miss)))


def seeds_needed(sd: float, distances: Iterable[float], alpha: float) -> int | None:
    """The least number of seeds, 3 at least, that gives POWER; None where MOST_SEEDS do not."""
    known = list(distances)
    low, high = 3, MOST_SEEDS
    if power(high, sd, known, alpha) < POWER:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, sd, known, alpha) >= POWER else (middle + 1, high)
    return low


@dataclass(frozen=True)
class Components:
    """Spread told apart: sd between pre-trainings without the noise of fine-tuning, and sd of fine-tuning itself.

    pretraining is None for a single run. finetuning is None where no run has two fine-tunings; pretraining then holds
    both.
    """

    pretraining: float | None
    finetuning: float | None
    runs: int
    finetunings: int


def components(values: Iterable[Sequence[float]]) -> Components:
    """The two sources of spread of a score, from its fine-tunings run by run (one-way random effects, by moments).

    Where fine-tuning alone explains the spread between runs, that of pre-training is 0.
    """
    runs = [list(run) for run in values if len(run)]
    degrees = sum(len(run) - 1 for run in runs)
    within = sum(variance(run) * (len(run) - 1) for run in runs if len(run) > 1) / degrees if degrees else None
    between = None
    if len(runs) > 1:
        noise = (within or 0.0) * fmean(1 / len(run) for run in runs)
        between = math.sqrt(max(0.0, variance([fmean(run) for run in runs]) - noise))
    return Components(between, None if within is None else math.sqrt(within), len(runs), sum(map(len, runs)))
