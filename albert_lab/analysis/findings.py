"""The comparisons of a claim, each tested against its bounds, and which of them decides the
claim.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from albert_lab.analysis.contrasts import Contrast, certain
from albert_lab.studies.claims import Comparison, Labels

ALPHA = 0.05


@dataclass(frozen=True)
class Finding:
    """A comparison with its contrast, whose effect is in logarithms for a ratio.

    Attributes:
        support: the two-sided p-value of the comparison being true.
        denial: that of its being false.
    """

    comparison: Comparison
    contrast: Contrast
    support: float
    denial: float


def tested(
    comparison: Comparison, name: Callable[[Labels], str], contrast_of: Callable[..., Contrast]
) -> Finding:
    """A comparison with its contrast, tested against each of its bounds.

    Args:
        name: the row of some labels, as the contrast calls it.
        contrast_of: contrasts.contrast() of a metric, or exact() of numbers without a spread.
    """
    weights = defaultdict[str, float](float)
    for weight, labels in comparison.weights:  # an interaction may have one row twice
        weights[name(labels)] += weight
    bounds = [bound for bound in (comparison.low, comparison.high) if math.isfinite(bound)]
    # A comparison that is shown beside another one has no bound, and is tested against nothing.
    bounds = bounds or [0.0]
    contrasts = [contrast_of(weights, bound, log=comparison.is_log) for bound in bounds]
    # The p-values of the effect being on the wrong side of each bound.
    outside = []
    for bound, contrast in zip(bounds, contrasts, strict=True):
        outside.append(contrast.p if bound == comparison.low else contrast.p_against)
    support = min(1.0, 2 * max(outside))
    denial = min(1.0, 2 * min(1 - p for p in outside))
    return Finding(comparison, contrasts[0], support, denial)


def exact(
    sizes: Mapping[str, float], weights: Mapping[str, float], bound: float, *, log: bool
) -> Contrast:
    """The contrast of numbers that have no spread, such as parameters: see contrasts.contrast().

    Args:
        sizes: the number of each row.
    """
    levels = {row: math.log(sizes[row]) if log else sizes[row] for row in weights}
    return certain(sum(weight * levels[row] for row, weight in weights.items()), bound)


def decisive(findings: Sequence[Finding]) -> Finding:
    """The comparison that decides a claim, with the p-values of the whole claim.

    It is true if all required comparisons are, so that the weakest decides; each of them can deny
    it (Bonferroni), and one that is clearly false does, whatever the others say.
    """
    required = [item for item in findings if item.comparison.is_required]
    weakest = max(required, key=lambda item: _rounded(item.support))
    against = min(findings, key=lambda item: _rounded(item.denial))
    denial = min(1.0, len(findings) * against.denial)
    support = 1.0 if against.denial < ALPHA else weakest.support
    shown = against if denial < support else weakest
    return Finding(shown.comparison, shown.contrast, support, denial)


def _rounded(p: float) -> float:
    # The last bits of a tiny p differ from one processor to another; of equal evidence, all then
    # show the first.
    return round(p, 12)
