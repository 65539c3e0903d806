"""Planned looks at a study: the level of its tests at each look, and the chance that later looks decide a claim."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit
from scipy.stats import norm
from scipy.stats import t as student

from albert_lab.studies.seed_plan import Spending

_MOST_Z = 12.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(100)


def _like_pocock(share: float, alpha: float) -> float:
    return alpha * math.log1p((math.e - 1) * share)


def _like_obrien_fleming(share: float, alpha: float) -> float:
    return 2 * float(ndtr(ndtri(alpha / 2) / math.sqrt(share)))


# The error that is spent once a share of the seeds of a plan has been looked at. [Lan and DeMets 1983]
_SPENT: dict[str, Callable[[float, float], float]] = {
    "pocock": _like_pocock,
    "obrien-fleming": _like_obrien_fleming,
}


def levels(looks: Sequence[int], spending: Spending, alpha: float, claims: int = 1) -> tuple[float, ...]:
    """The level of p-values after Holm's correction at each look, so that all looks together are wrong at most alpha.

    Each claim is tested by a spending function of alpha / claims, so Bonferroni's inequality holds over the claims and
    the spending function over the looks; the levels, multiplied by claims, are compared with Holm's p-values. Where
    Holm divides by fewer claims, this is conservative.

    Args:
        looks: the numbers of seeds, rising.
        spending: how the error is spent.
        alpha: the error of all claims at all looks.
        claims: the number of claims in the family.

    Source: Lan and DeMets, Biometrika 70 (1983); Maurer and Bretz, Statistics in Biopharmaceutical Research 5 (2013).
    """
    return _levels(tuple(looks), spending, alpha, claims)


def level_at(looks: Sequence[int], levels: Sequence[float], seeds: int) -> float:
    """The level for so many seeds: at a look its own, and between two looks the lower of theirs.

    Fewer than the first look have its level, and more than the last one the last level.
    """
    if seeds in looks:
        return levels[looks.index(seeds)]
    reached = sum(look < seeds for look in looks)
    return min(levels[max(reached - 1, 0) : reached + 1])


@cache
def _levels(looks: tuple[int, ...], spending: Spending, alpha: float, claims: int) -> tuple[float, ...]:
    assert looks
    assert list(looks) == sorted(set(looks))
    levels: list[float] = []
    spent = 0.0
    sums = _Sums()
    for number, seeds in enumerate(looks):
        due = _SPENT[spending](seeds / looks[-1], alpha / claims)
        sums.add(seeds - (looks[number - 1] if number else 0))
        bound = sums.bound(due - spent, seeds)
        sums.cut(bound)
        spent = due
        levels.append(2 * claims * float(norm.sf(bound / math.sqrt(seeds))))
    return tuple(levels)


class _Sums:
    """The density of the sum of the seeds' values, each standard normal, of studies that no look has decided.

    Kept as values at Gauss-Legendre nodes. [Armitage, McPherson and Rowe 1969]
    """

    def __init__(self) -> None:
        self._at, self._mass, self._sd = np.zeros(1), np.ones(1), 0.0

    def add(self, seeds: int) -> None:
        self._sd = math.sqrt(seeds)

    def bound(self, share: float, seeds: int) -> float:
        """The bound beyond which, on both sides, this share of all studies lies."""

        def beyond(bound: float) -> float:
            tails = ndtr((self._at - bound) / self._sd) + ndtr((-bound - self._at) / self._sd)
            return float(self._mass @ tails) - share

        root: Any = brentq(beyond, 0.0, _MOST_Z * math.sqrt(seeds), xtol=1e-10)
        return float(root)

    def cut(self, bound: float) -> None:
        at = bound * _NODES
        density = norm.pdf(at[:, None], loc=self._at, scale=self._sd) @ self._mass
        self._at, self._mass = at, bound * _WEIGHTS * density


def chance_to_exceed(
    distance: float, error: float, df: float, fixed_error: float, n: int, last: int, alpha: float
) -> float:
    """The predictive probability that the last look shows a value to be above a bound, from the data so far.

    The prior is flat: the value at the last look is the one so far plus the noise of the seeds to come.

    Args:
        distance: of the value so far from the bound.
        error: the standard error so far.
        df: its degrees of freedom.
        fixed_error: the part of error that more seeds do not reduce.
        n: the number of seeds so far.
        last: the number of seeds at the last look.
        alpha: the two-sided level of one claim at the last look.
    """
    if last <= n:
        return 0.0
    over_seeds = max(error**2 - fixed_error**2, 0.0)
    to_come = math.sqrt(over_seeds * (1 - n / last))
    at_last = math.sqrt(over_seeds * n / last + fixed_error**2)
    needed = float(stdtrit(df * (last - 1) / (n - 1), 1 - alpha / 2)) * at_last
    if not to_come:
        return float(distance > needed)
    return float(student.sf((needed - distance) / to_come, df))
