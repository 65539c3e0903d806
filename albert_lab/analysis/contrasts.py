"""Weighted sums of row means, with intervals and tests over seeds and held-out documents."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit
from scipy.stats import nct

from albert_lab.analysis.frame import RANDOM, Frame, Sample
from albert_lab.analysis.spread import Variance, moderated, variance_of
from albert_lab.runs.reported import AVERAGE, AVERAGED

LEVEL = 0.95
MOST_SEEDS = 1000
_Text = tuple[str, bytes]  # that a row was scored on: the metric, and the n by document
_Errors = dict[_Text, np.ndarray]
POWER = 0.8  # the share of studies that would decide an effect


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of row means in the unit of the metric; of their logarithms if log.

    Attributes:
        effect: the sum.
        low, high: its 95 % interval over seeds and documents; NaN if no row has several seeds.
        p: the one-sided p-value of the true sum being at most the bound; NaN without an interval.
        p_against: that of its being at least the bound.
        over_seeds: the standard deviation of the sum between seeds, of one seed a row; NaN if not
            known.
        over_documents: its standard error over held-out documents, which more seeds do not change.
    """

    effect: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_against: float = math.nan
    over_seeds: float = math.nan
    over_documents: float = 0.0


@dataclass(frozen=True)
class _Group:
    """Rows that continue the same trunks, or one row alone: a weighted sum that is observed once a
    trunk, or a seed.

    Attributes:
        weights: by row, as in the contrast.
        samples: the runs of each row, in the order of the trunks.
    """

    weights: Mapping[str, float]
    samples: Mapping[str, Sample]

    @property
    def sums(self) -> np.ndarray:
        """The weighted sum of the values. [trunks]"""
        return sum(
            (weight * self.samples[row].values for row, weight in self.weights.items()), np.zeros(1)
        )

    @property
    def size(self) -> int:
        return len(self.sums)


def contrast(
    frame: Frame,
    metric: str,
    weights: Mapping[str, float],
    bound: float = 0,
    *,
    log: bool = False,
    alone: bool = False,
) -> Contrast:
    """A weighted sum of row means: {"sop": 1, "nsp": -1} is their difference, {"sop": 1} a level.

    Its variance is a sum. That over seeds has a part for each row, moderated by what other rows of
    the scale have (spread.py). Rows that continue the same trunks are one part: their sum is taken
    trunk by trunk, so what they have in common is no part of its error. The variance over held-out
    documents is that of the rows' weighted errors by document (a ratio estimator). What a seed
    answers by chance is in both and is counted once, as in clustering by two crossed factors
    (Cameron, Gelbach and Miller 2011, doi:10.1198/jbes.2010.07136), and the variance over seeds
    beyond it is never below zero. Degrees of freedom are those of Welch and Satterthwaite. Rows of
    the same runs count once.

    Args:
        weights: by the names of rows that have values of the metric.
        bound: what the p-values are about.
        log: sum the logarithms of values, so that the effect is that of a ratio; NaN if a row has
            no value, or one that is not above 0.
        alone: where no row has several seeds, give the interval over documents: that of these
            models alone.

    Raises:
        KeyError: a row without a value of the metric, unless log.
    """
    samples = frame.samples(metric, log=log)
    if log and not weights.keys() <= samples.keys():
        return Contrast(math.nan)
    groups = _groups(samples, weights)
    # no -0.0 for equal means
    effect = round(sum(float(group.sums.mean()) for group in groups), 9) + 0.0
    documents, chance = _over_documents(frame, metric, groups, log=log)
    # A row of one run takes the variance of others only where the table itself shows a spread.
    shows_spread = any(len(sample.runs) > 1 for sample in samples.values())
    if not (shows_spread or (alone and documents)):
        return Contrast(effect)
    over_seeds = (
        [_over_seeds(group, frame.prior(metric, log=log)) for group in groups]
        if shows_spread
        else []
    )
    of_seeds = sum(part.value for part in over_seeds)
    of_documents = sum(part.value for part in documents)
    beyond_chance = [
        max(0.0, part.value - twice) for part, twice in zip(over_seeds, chance, strict=False)
    ]
    total = sum(beyond_chance) + of_documents
    scale = 1.0 if log else max(float(np.abs(samples[row].values).max()) for row in weights)
    if math.sqrt(total) <= 1e-9 * scale:  # exact, as parameters are
        return certain(effect, bound)
    df = total**2 / sum(part.value**2 / part.df for part in [*over_seeds, *documents] if part.value)
    half = float(stdtrit(df, (1 + LEVEL) / 2)) * math.sqrt(total)
    t = (effect - bound) / math.sqrt(total)
    seeds = min(group.size for group in groups)
    return Contrast(
        effect,
        effect - half,
        effect + half,
        p=float(stdtr(df, -t)),
        p_against=float(stdtr(df, t)),
        over_seeds=math.sqrt(seeds * of_seeds) if over_seeds else math.nan,
        over_documents=math.sqrt(max(0.0, of_documents - sum(chance))),
    )


def certain(effect: float, bound: float) -> Contrast:
    """The contrast of an effect without an error, such as one of parameters."""
    return Contrast(effect, effect, effect, float(effect <= bound), float(effect >= bound), 0.0)


def _groups(samples: Mapping[str, Sample], weights: Mapping[str, float]) -> list[_Group]:
    """The rows of a contrast by the trunks that they continue; rows of the same runs are one
    row.
    """
    first: dict[tuple[str, ...], str] = {}
    for row, sample in samples.items():
        first.setdefault(sample.runs, row)
    merged = defaultdict[str, float](float)
    for row, weight in weights.items():
        merged[first[samples[row].runs]] += weight
    by_trunks = defaultdict[tuple[str, ...], list[str]](list)
    for row in merged:
        trunks = samples[row].trunks
        # Runs that all start from one trunk are not told apart by it: they are paired with nothing.
        is_pairable = len(set(trunks)) == len(trunks)
        by_trunks[tuple(sorted(trunks)) if is_pairable else samples[row].runs].append(row)
    return [
        _Group(
            {row: merged[row] for row in rows},
            {row: samples[row].in_order_of_trunks() for row in rows},
        )
        for rows in by_trunks.values()
    ]


def _over_seeds(group: _Group, prior: Variance) -> Variance:
    """The variance of a group's mean over seeds."""
    own = variance_of(group.sums)
    squares = sum(weight**2 for weight in group.weights.values())
    others = Variance(squares * prior.value, prior.df)
    # What rows of the same trunks have in common is in the prior of single rows, and not in their
    # difference.
    is_paired = len(group.weights) > 1 and own.df > 0
    variance = own if is_paired else moderated(own, others)
    return Variance(variance.value / group.size, variance.df)


def _over_documents(
    frame: Frame, metric: str, groups: Sequence[_Group], *, log: bool
) -> tuple[list[Variance], list[float]]:
    """The variances of a contrast over the documents that its rows were scored on, and what seeds
    answer by chance.

    A variance for rows that were scored on the same text; of several texts, and of the tasks of an
    average, one each. The second list is that part of each group's variance over seeds that comes
    from answers to single documents. There are none if the answers of a row were not kept by
    document.
    """
    members = AVERAGED if metric == AVERAGE else (metric,)
    errors: _Errors = {}
    chance = [0.0 for _ in groups]
    samples = [sample for group in groups for sample in group.samples.values()]
    for member in members:
        kept = frame.documents_of(member).keys()
        if not all(kept >= {*sample.runs} for sample in samples):
            return [], chance
    for place, group in enumerate(groups):
        for text, by_trunk in _errors(frame, members, group, log=log).items():
            errors[text] = errors.get(text, 0.0) + by_trunk.mean(0)
            if group.size > 1:
                chance[place] += (
                    _variance_over_documents(text, by_trunk.std(0, ddof=1)).value / group.size
                )
    variances = [_variance_over_documents(text, error) for text, error in errors.items()]
    return [part for part in variances if part.df > 0], chance


def _errors(frame: Frame, members: Sequence[str], group: _Group, *, log: bool) -> _Errors:
    """A group's weighted errors by document, for each text that its rows were scored on. [trunks,
    documents]
    """
    errors: _Errors = {}
    for member in members:
        documents = frame.documents_of(member)
        scale = (1.0 if member.endswith("_loss") else 100.0) / len(members)
        for row, weight in group.weights.items():
            sample = group.samples[row]
            for trunk, run in enumerate(sample.runs):
                n, right = documents[run]
                # The derivative of a logarithm is 1 over its level.
                by_level = scale / math.exp(sample.values[trunk]) if log else scale
                text = (member, n.tobytes())
                by_trunk = errors.setdefault(text, np.zeros((group.size, len(n))))
                by_trunk[trunk] += weight * by_level * (right - right.sum() / n.sum() * n) / n.sum()
    return errors


def _variance_over_documents(text: _Text, errors: np.ndarray) -> Variance:
    """The variance of the sum of errors [documents], with documents as clusters; 0 with 0 degrees
    of freedom, since variances are added, if fewer than two have answers.

    Args:
        text: the metric, and the number of answers by document as bytes of float64.
    """
    answered = np.count_nonzero(np.frombuffer(text[1]))
    return (
        Variance(answered / (answered - 1) * float((errors**2).sum()), answered - 1.0)
        if answered > 1
        else Variance(0.0)
    )


def seeds_needed(distance: float, over_seeds: float, over_documents: float = 0.0) -> int | None:
    """The fewest seeds a row with which an effect would be decided in four of five studies; None if
    none would do.

    The test is two-sided at 5 %, as that of a claim before Holm's correction, of two rows or more,
    each of its own spread; its power is that of the noncentral t distribution, for a true effect of
    the given size.

    Args:
        distance: of the effect from the bound of the claim.
        over_seeds, over_documents: as those of Contrast; before a study, the first is the square
            root of the sum of squared weights times the scale's variance (Frame.prior).
    """
    for seeds in range(2, MOST_SEEDS + 1):
        variance = over_seeds**2 / seeds + over_documents**2
        if variance == 0:
            return seeds
        # Documents are many, so their variance is taken as known.
        df = min((variance * seeds / over_seeds**2) ** 2 * (seeds - 1), 1e6) if over_seeds else 1e6
        critical = float(stdtrit(df, (1 + LEVEL) / 2))
        if nct.sf(critical, df, abs(distance) / math.sqrt(variance)) >= POWER:
            return seeds
    return None


def counts(frame: Frame, metric: str) -> bool:
    """Whether a score says something about pre-training at this scale: losses and scores on
    held-out text do.

    A task does if pre-trained weights are above random ones of the same shape and, where there are
    any (not of spans), above words alone, with 95 % intervals that exclude them (of one seed: over
    examples). Both are means over all rows of the scale and text that have random weights beside
    them, so every table says the same, and no row is chosen. The average does if all do.
    """
    if metric == AVERAGE:
        return all(counts(frame, task) for task in AVERAGED)
    task = frame.tasks.get(metric)
    if task is None:
        return True
    pooled = frame.pooled
    samples = pooled.samples(task)
    has_random = [row for row in samples if row + RANDOM in samples]
    # A row that several tables have is one row, in all of them with the same random weights.
    has_random.sort(key=lambda row: samples[row + RANDOM].runs)
    rows = {samples[row].runs: row for row in has_random}.values()
    if not rows:
        return False
    level = {row: 1 / len(rows) for row in rows}
    above_random = level | {row + RANDOM: -1 / len(rows) for row in rows}
    numbers: Any = pooled.of(task)
    words = float(numbers["words"].astype(float).max())  # NaN of spans
    is_above_words = math.isnan(words) or contrast(pooled, task, level, alone=True).low > words
    return is_above_words and contrast(pooled, task, above_random, alone=True).low > 0


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted by Holm's step-down procedure, in the given order; NaN stays and does not
    count.
    """
    adjusted = np.array(p_values, float)
    # argsort puts NaN last.
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]
    adjusted[order] = np.minimum(
        1, np.maximum.accumulate(adjusted[order] * np.arange(len(order), 0, -1))
    )
    return adjusted.tolist()
