"""The noise of dev examples in a comparison of rows, next to that of seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ExampleScores:
    """The scores of one row's dev examples.

    Attributes:
        seeds: the pre-training seeds.
        scores: a score in [0, 1] of each example, mean over fine-tuning seeds. [seeds, examples]
        examples: a fingerprint of the examples; rows with the same one are compared example by example.
    """

    seeds: tuple[int, ...]
    scores: np.ndarray
    examples: str


def example_variance(rows: Sequence[ExampleScores], weights: Sequence[float]) -> tuple[float, float]:
    """The variance of a weighted sum of row means due to the choice of examples, and its degrees of freedom.

    By moments in a crossed layout of seeds and examples: the variance over examples of the sum's mean over seeds,
    minus the part due to random answers of single seeds, which the spread over seeds already includes. At least 0.

    Args:
        rows: one per weight. Rows of the same examples are paired example by example, others add up.
    """
    groups: dict[str, list[tuple[float, ExampleScores]]] = {}
    for weight, row in zip(weights, rows, strict=True):
        groups.setdefault(row.examples, []).append((weight, row))
    total, degrees = 0.0, np.inf
    for group in groups.values():
        n = group[0][1].scores.shape[1]
        if n < 2:
            continue
        profile = sum(weight * row.scores.mean(axis=0) for weight, row in group)
        total += max(0.0, float(np.var(profile, ddof=1)) - _interaction(group)) / n
        degrees = min(degrees, n - 1.0)
    return total, degrees


def _interaction(group: Sequence[tuple[float, ExampleScores]]) -> float:
    if len({row.seeds for _, row in group}) == 1:
        return _residual(np.asarray(sum(weight * row.scores for weight, row in group)))
    return sum(weight**2 * _residual(row.scores) for weight, row in group)


def _residual(scores: np.ndarray) -> float:
    """The mean square of the residuals of seeds and examples, over the number of seeds; 0 for a single seed."""
    seeds, examples = scores.shape
    if seeds < 2:
        return 0.0
    rest = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    return float((rest**2).sum()) / ((seeds - 1) * (examples - 1)) / seeds
