"""The trend of an effect over compute: a line with scatter between rungs, its predictions, and how well they hold."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any, Literal

import numpy as np
from scipy.stats import t as student

from albert_lab.score import wilson

LEVEL = 0.95
# Few rungs cannot tell scatter from noise: at least this share of the variance around the line counts as scatter in
# predictions. With 0, predictions of the next rung hold in 92 % of simulated ladders (benchmarks/trend_simulation.py).
LEAST_SCATTER = 1 / 3
FEWEST_RUNGS = 3  # of a line with an error

Direction = Literal["grows", "shrinks", "changes sign", "rises", "falls"]


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    def covers(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __neg__(self) -> "Interval":
        return Interval(-self.value, -self.high, -self.low)


@dataclass(frozen=True)
class Effect:
    """The effect that was measured at one rung: the mean difference of two rows, paired by seed.

    Attributes:
        log_flops: log10 of the training FLOPs of a run.
        error: the standard error over seeds, with a spread pooled over the rungs; 0 if no rung has two seeds.
        df: the degrees of freedom of that spread.
        excess: the variance of the mean that a rung of a larger spread adds to that.
    """

    log_flops: float
    value: float
    n: int
    error: float
    df: int
    excess: float = 0.0

    @property
    def interval(self) -> Interval:
        """The interval over seeds; of no width if the spread is not known.

        A rung whose own spread is larger than the pooled one adds the excess, as a row of a table does
        (statistics.PooledSpread): without it, the interval of one noisy rung among five quiet ones holds in 55 % of
        cases in place of 95 %.
        """
        variance = self.error**2 + self.excess
        if not variance:
            return Interval(self.value, self.value, self.value)
        parts = [(self.error**2, self.df), (self.excess, self.n - 1)]
        df = variance**2 / sum(part**2 / own for part, own in parts if part)
        reach = _t(min(df, self.df)) * math.sqrt(variance)
        return Interval(self.value, self.value - reach, self.value + reach)


@dataclass(frozen=True)
class Trend:
    """effect = level + slope * (log10(FLOPs) - centre) + u, with u ~ N(0, tau^2) at each rung.

    Attributes:
        effects: of the rungs, lowest compute first.
        centre: the mean of their log10(FLOPs).
        level: the effect in the middle of the ladder.
        slope: the change of the effect per tenfold compute.
        p: of the slope being 0, two-sided.
        seeds_alone: the half width of the slope's interval if the noise of seeds were all that moves the rungs.
        tau: the standard deviation of the scatter between rungs beyond the noise of seeds.
        scatter: the variance of the scatter in predictions: at least a share of the variance around the line.
        covariance: of level and slope.
    """

    effects: tuple[Effect, ...]
    centre: float
    level: Interval
    slope: Interval
    p: float
    seeds_alone: float
    tau: float
    scatter: float
    covariance: tuple[tuple[float, float], tuple[float, float]]

    @property
    def share_of_one_sign(self) -> float:
        """The share of rungs whose effect has the sign that most of them have."""
        above = sum(effect.value > 0 for effect in self.effects)
        return max(above, len(self.effects) - above) / len(self.effects)

    @property
    def is_narrow(self) -> bool:
        """Whether the slope's interval is narrower than the noise of seeds makes it: the rungs lie on a line by chance.

        Over all ladders intervals hold in 95 % of cases; over those in which the weighted mean square around the line
        is below a tenth of what noise makes it, in 65 to 77 %.
        """
        return self.slope.high - self.slope.value < self.seeds_alone

    def line(self, log_flops: float) -> Interval:
        return self._at(log_flops, 0.0)

    def predict(self, log_flops: float) -> Interval:
        """The effect at a compute with its prediction interval: that of the line, and the scatter of a rung."""
        return self._at(log_flops, self.scatter)

    def direction(self, p: float | None = None, alpha: float = 1 - LEVEL) -> Direction | None:
        """The way in which the effect changes with compute; None if the slope is not shown to differ from 0.

        It changes sign if the line is shown to be on different sides of 0 at the lowest rung and at the top. Of a line
        that crosses 0 with less, no size is shown to grow or shrink: it rises or falls.
        """
        if (self.p if p is None else p) > alpha:
            return None
        first, last = (self.line(self.effects[place].log_flops) for place in (0, -1))
        if first.sign * last.sign < 0:
            return "changes sign"
        if first.value * last.value < 0:
            return "rises" if self.slope.value > 0 else "falls"
        return "grows" if abs(last.value) > abs(first.value) else "shrinks"

    def _at(self, log_flops: float, more: float) -> Interval:
        (of_level, joint), (_, of_slope) = self.covariance
        distance = log_flops - self.centre
        value = self.level.value + self.slope.value * distance
        variance = of_level + 2 * joint * distance + of_slope * distance**2 + more
        reach = _t(len(self.effects) - 2) * math.sqrt(max(variance, 0.0))
        return Interval(value, value - reach, value + reach)


@dataclass(frozen=True)
class Validation:
    """The effect at the top rung as predicted from the lower rungs, and as measured there.

    predicted is an interval for what the top rung's seeds measure, so it includes their noise.
    """

    predicted: Interval
    measured: Effect

    @property
    def holds(self) -> bool:
        return self.predicted.covers(self.measured.value)


@dataclass(frozen=True)
class Share:
    """How many of some contrasts have the sign at the top rung that was predicted."""

    right: int
    of: int

    @property
    def interval(self) -> Interval:
        low, high = wilson(self.right, self.of)
        return Interval(self.right / self.of, low / 100, high / 100)


@dataclass(frozen=True)
class DecisionAccuracy:
    """The share of contrasts whose sign at the top rung is predicted by all lower rungs, and by the lowest alone.

    Source: Magnusson et al., DataDecide (arXiv 2504.11393), section 2.
    """

    ladder: Share
    lowest: Share

    @classmethod
    def of_all(cls, parts: Iterable["DecisionAccuracy"]) -> "DecisionAccuracy | None":
        """The shares of all contrasts of some measures together; None if there are none."""
        known = list(parts)
        if not known:
            return None
        of = sum(part.ladder.of for part in known)
        by_ladder, by_lowest = sum(part.ladder.right for part in known), sum(part.lowest.right for part in known)
        return cls(Share(by_ladder, of), Share(by_lowest, of))


def effects(differences: Sequence[Mapping[int, float]], flops: Sequence[float]) -> tuple[Effect, ...]:
    """The effect at each rung, lowest compute first, with one spread over seeds pooled over all rungs.

    Not a spread of each rung: with three seeds its error is so uncertain, and so tied to the rung's weight in the line,
    that 95 % intervals of the slope hold in 90 % of cases (benchmarks/trend_simulation.py).
    """
    assert all(differences)
    samples = [list(by_seed.values()) for by_seed in differences]
    df = sum(len(sample) - 1 for sample in samples)
    squares = sum((value - fmean(sample)) ** 2 for sample in samples for value in sample)
    sd = math.sqrt(squares / df) if df else 0.0
    measured = []
    for sample, compute in zip(samples, flops, strict=True):
        own = variance(sample) if len(sample) > 1 else 0.0
        excess = max(0.0, own - sd**2) / len(sample)
        measured.append(
            Effect(math.log10(compute), fmean(sample), len(sample), sd / math.sqrt(len(sample)), df, excess)
        )
    return tuple(sorted(measured, key=lambda effect: effect.log_flops))


def fit(effects: Sequence[Effect]) -> Trend | None:
    """The trend of effects by restricted maximum likelihood, with Hartung and Knapp's intervals.

    Their variances are multiplied by the weighted mean square around the line, and Student's t has two degrees of
    freedom fewer than there are rungs. So intervals hold even if the noise of seeds is not known well.

    Returns:
        None if there are fewer than three rungs.

    Source: Knapp and Hartung, Statistics in Medicine 22 (2003); Viechtbauer, J. Educ. Behav. Stat. 30 (2005).
    """
    from statsmodels.regression.linear_model import WLS

    if len(effects) < FEWEST_RUNGS:
        return None
    x, y = _columns(effects)
    errors = np.array([effect.error**2 for effect in effects])
    centre = float(x.mean())
    design = np.column_stack([np.ones(len(x)), x - centre])
    around = _mean_square(design, y)
    tau_squared = restricted_maximum(design, y, errors) if errors.any() else around
    variances = errors + tau_squared
    weights = 1 / variances if variances.all() else np.ones(len(x))
    model: Any = WLS  # its stubs take one weight for all
    fitted = model(y, design, weights=weights).fit()
    (low, high), (slope_low, slope_high) = fitted.conf_int(1 - LEVEL)
    level, slope = map(float, fitted.params)
    (first, joint), (_, last) = fitted.cov_params()
    error = math.sqrt(last)
    of_seeds = effects[0].df
    alone = _t(of_seeds) * math.sqrt(float(fitted.normalized_cov_params[1][1])) if of_seeds else 0.0
    t = abs(slope) / error if error else math.inf if slope else 0.0
    return Trend(
        tuple(effects),
        centre,
        Interval(level, float(low), float(high)),
        Interval(slope, float(slope_low), float(slope_high)),
        float(2 * student.sf(t, len(effects) - 2)),
        alone,
        math.sqrt(tau_squared),
        max(tau_squared, LEAST_SCATTER * around),
        ((float(first), float(joint)), (float(joint), float(last))),
    )


def restricted_maximum(design: np.ndarray, y: np.ndarray, variances: np.ndarray) -> float:
    """The variance between rungs with the greatest restricted likelihood; 0 is allowed.

    Args:
        design: of the line. [rungs, coefficients]
        y: the effects. [rungs]
        variances: their squared standard errors, above 0. [rungs]
    """

    def criterion(candidates: np.ndarray) -> np.ndarray:
        """Minus twice the restricted log-likelihood of each candidate, without constants. [candidates]"""
        weights = 1 / (variances + candidates[:, None])
        cross = np.einsum("ri,cr,rj->cij", design, weights, design)
        coefficients = np.linalg.solve(cross, (design.T @ (weights * y).T).T[:, :, None])[:, :, 0]
        rest = y - coefficients @ design.T
        return -np.log(weights).sum(1) + np.linalg.slogdet(cross)[1] + (weights * rest**2).sum(1)

    # It can have several minima, so all of the range is searched, then finer around the best.
    most = _mean_square(design, y) * len(y) + float(variances.max())
    candidates = np.concatenate([[0.0], most * np.geomspace(1e-6, 1.0, 40)])
    for _ in range(6):
        best = int(np.argmin(criterion(candidates)))
        low, high = candidates[max(best - 1, 0)], candidates[min(best + 1, len(candidates) - 1)]
        candidates = np.concatenate([[candidates[best]], np.linspace(low, high, 20)])
        candidates.sort()
    return float(candidates[np.argmin(criterion(candidates))])


def validate(effects: Sequence[Effect]) -> Validation | None:
    """The top rung predicted from the lower ones; None if these are fewer than three.

    The interval joins two errors of different degrees of freedom: that of the prediction and that of the top rung's
    seeds, by the root of the sum of squared limits. [Zou and Donner 2008]
    """
    lower = fit(effects[:-1])
    if lower is None:
        return None
    top = effects[-1]
    predicted = lower.predict(top.log_flops)
    reach = math.hypot(predicted.high - predicted.value, top.interval.high - top.value)
    return Validation(Interval(predicted.value, predicted.value - reach, predicted.value + reach), top)


def decision_accuracy(ladders: Sequence[Sequence[Effect]]) -> DecisionAccuracy | None:
    """The decision accuracy over contrasts with at least three rungs; None if there is none.

    An effect of exactly 0 at the top agrees with no prediction.
    """
    judged = [effects for effects in ladders if len(effects) >= FEWEST_RUNGS]
    if not judged:
        return None
    by_ladder = sum(_predicted(effects[:-1], effects[-1].log_flops) * effects[-1].value > 0 for effects in judged)
    by_lowest = sum(effects[0].value * effects[-1].value > 0 for effects in judged)
    return DecisionAccuracy(Share(by_ladder, len(judged)), Share(by_lowest, len(judged)))


def expected_reach(log_flops: Sequence[float], seeds: Sequence[int], sd: float, tau: float = 0.0) -> float | None:
    """The expected half width of the slope's interval; None with fewer than three rungs.

    Args:
        log_flops: of the rungs.
        seeds: how many each has.
        sd: the standard deviation of the difference over seeds.
        tau: that of the scatter between rungs.
    """
    if len(log_flops) < FEWEST_RUNGS:
        return None
    weights = 1 / (sd**2 / np.array(seeds) + tau**2)
    centred = np.array(log_flops) - np.average(log_flops, weights=weights)
    return _t(len(log_flops) - 2) / math.sqrt(weights @ centred**2)


def _predicted(lower: Sequence[Effect], log_flops: float) -> float:
    trend = fit(lower)
    if trend:
        return trend.line(log_flops).value
    (x0, x1), (y0, y1) = _columns(lower)
    return float(y0 + (y1 - y0) / (x1 - x0) * (log_flops - x0))


def _columns(effects: Sequence[Effect]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([effect.log_flops for effect in effects]), np.array([effect.value for effect in effects])


def _mean_square(design: np.ndarray, y: np.ndarray) -> float:
    rest = y - design @ np.linalg.lstsq(design, y)[0]
    return float(rest @ rest) / (len(y) - design.shape[1])


def _t(df: float) -> float:
    return float(student.ppf((1 + LEVEL) / 2, df))
