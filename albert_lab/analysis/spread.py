"""How far runs of one row vary, and what other rows of the scale say of it: an empirical prior of
variances.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

# The most degrees of freedom that a prior lends to a row of several runs. limma's guarantee is one
# on the mean over rows: a row that varies more than most is shrunk towards the others, and its
# comparisons are false in 11 to 17 % of studies of three seeds. A claim is about its own rows, so a
# prior may only keep a variance from being tiny by chance. At this weight the nominal 5 % hold for
# each row (tests/analysis/test_simulation.py).
MOST_LENT = 0.25


@dataclass(frozen=True)
class Variance:
    """An estimated variance, with its degrees of freedom; NaN and 0 if nothing is known."""

    value: float = math.nan
    df: float = 0.0


def prior_of(variances: Iterable[Variance]) -> Variance:
    """What the variances of some rows say of that of one more row, which is scaled inverse
    chi-square around theirs.

    Its degrees of freedom are estimated from how far the logarithms of variances differ beyond what
    their own degrees of freedom explain (`fitFDist` of limma; Smyth 2004, section 6.2,
    doi:10.2202/1544-6115.1027); at most those of all rows together. Its value is the geometric
    mean, which is above limma's: that of a row without runs of its own is rather too large than too
    small. Rows without any spread are left out, as they have no logarithm.
    """
    # In one order, so that every table of a scale computes the same to the last bit.
    known = sorted((item.value, item.df) for item in variances if item.df > 0)
    positive = [(value, df) for value, df in known if value > 0]
    if not positive:
        return Variance(0.0, sum(df for _, df in known)) if known else Variance()
    values, df = np.array(positive).T
    logarithms = np.log(values) - digamma(df / 2) + np.log(df / 2)
    typical = float(np.exp(logarithms.mean()))
    most = float(df.sum())
    if len(values) == 1:
        return Variance(typical, most)
    excess = float(logarithms.var(ddof=1) - polygamma(1, df / 2).mean())
    # The variance of the logarithm of an inverse chi-square is the trigamma function of half of its
    # degrees of freedom.
    if excess <= polygamma(1, most / 2):
        return Variance(typical, most)
    half: Any = brentq(lambda half: float(polygamma(1, half)) - excess, 1e-3, most / 2)
    return Variance(typical, 2 * float(half))


def moderated(own: Variance, others: Variance) -> Variance:
    """A row's variance and its prior together, weighted by degrees of freedom: `squeezeVar` of
    limma, but the prior weighs at most MOST_LENT.

    A row of one run takes the prior whole; without a prior either, nothing is known (NaN, 0).
    """
    if not own.df:
        return others
    lent = min(others.df, MOST_LENT)
    if not lent:
        return own
    df = own.df + lent
    return Variance((own.df * own.value + lent * others.value) / df, df)


def variance_of(values: np.ndarray) -> Variance:
    """The variance of some values: 0 if they differ by rounding alone, and not known of fewer than
    two.
    """
    if len(values) < 2:
        return Variance()
    value = float(values.var(ddof=1))
    is_rounding = value <= (1e-9 * float(np.abs(values).max())) ** 2
    return Variance(0.0 if is_rounding else value, len(values) - 1.0)
