"""The evidence on a claim: its comparisons with their estimates, and what these seeds and more would show."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from albert_lab.analysis.alarms import RowAlarm
from albert_lab.analysis.papers_numbers import papers_effect
from albert_lab.analysis.statistics import Estimate, detectable, seeds_needed
from albert_lab.measures import catalog
from albert_lab.studies.claims import Claim, Comparison
from albert_lab.studies.experiment import Experiment

ALPHA = 0.05
FEWEST_SEEDS = 3

Samples = Literal["seed", "round"]


@dataclass(frozen=True)
class Finding:
    """A comparison with its estimate; its p-values for and against are two-sided."""

    comparison: Comparison
    estimate: Estimate

    @cached_property
    def support(self) -> float:
        bounds = (self.estimate.above(self.comparison.low), self.estimate.below(self.comparison.high))
        return min(1.0, 2 * max(p for p, bound in zip(bounds, self._bounds, strict=True) if math.isfinite(bound)))

    @cached_property
    def denial(self) -> float:
        bounds = (self.estimate.below(self.comparison.low), self.estimate.above(self.comparison.high))
        return min(1.0, 2 * min(p for p, bound in zip(bounds, self._bounds, strict=True) if math.isfinite(bound)))

    @property
    def _bounds(self) -> tuple[float, float]:
        return self.comparison.low, self.comparison.high

    @property
    def is_outside(self) -> bool:
        """Whether the whole interval is beyond one of the bounds."""
        interval = self.estimate.interval
        return interval is not None and (interval[1] < self.comparison.low or self.comparison.high < interval[0])


@dataclass(frozen=True)
class Evidence:
    """All findings of one claim: it is true if all required ones are, and false if any one is false.

    If rows have not learnt the metric, not_learnt says which, and the findings are those of the others. Without any,
    shows_nothing is True, and the findings, of all rows, decide nothing. n_of is what its samples are over.
    """

    claim: Claim
    findings: tuple[Finding, ...]
    not_learnt: str
    shows_nothing: bool
    alarms: tuple[RowAlarm, ...]
    n_of: Samples

    @property
    def required(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.comparison.is_required]

    @property
    def weakest(self) -> Finding:
        return max(self.required, key=lambda finding: _rounded(finding.support))

    @property
    def strongest_against(self) -> Finding:
        """The one that denies the claim most clearly."""
        return min(self.findings, key=lambda finding: _rounded(finding.denial))

    @property
    def denial(self) -> float:
        # Bonferroni: any of them can deny the claim
        return min(1.0, len(self.findings) * self.strongest_against.denial)

    @property
    def speaks_against(self) -> bool:
        return self.denial < self.weakest.support or any(finding.is_outside for finding in self.findings)

    @property
    def p(self) -> float:
        return self.denial if self.speaks_against else self.weakest.support

    @property
    def n(self) -> int:
        return min(finding.estimate.n for finding in self.findings)

    @property
    def is_tested(self) -> bool:
        return self.n >= FEWEST_SEEDS and not self.shows_nothing


def straddled(claim: Claim, finding: Finding) -> str:
    """That the interval of a level contains one of its bounds; empty for other claims and intervals."""
    interval = finding.estimate.interval
    if claim.level is None or interval is None:
        return ""
    bounds = (finding.comparison.low, finding.comparison.high)
    inside = [f"{bound:g} %" for bound in bounds if interval[0] <= bound <= interval[1]]
    return f"the interval straddles {' and '.join(inside)}" if inside else ""


def detectable_by(finding: Finding, alpha: float) -> float | None:
    """The smallest distance from its bounds, from both alike if it has two, that a comparison would show.

    For a ratio, as a factor.
    """
    estimate, comparison = finding.estimate, finding.comparison
    if not estimate.error or estimate.df is None:
        return None
    distance = detectable(estimate.error, estimate.df, alpha, 2 if comparison.has_two_bounds else 1)
    return math.exp(distance) if comparison.is_log else distance


def smaller_than_paper(evidence: Evidence, experiment: Experiment) -> tuple[Finding, float] | None:
    """The comparison whose effect is most clearly below the paper's, and the p-value; None if the paper prints none."""
    candidates = []
    for finding in evidence.required:
        paper = papers_effect(finding.comparison, evidence.claim.metric, experiment)
        if finding.comparison.low == 0 and paper is not None and paper > 0 and not finding.comparison.is_log:
            candidates.append((finding, 2 * finding.estimate.below(float(paper))))
    if not candidates:
        return None
    finding, p = min(candidates, key=lambda item: _rounded(item[1]))
    return finding, min(1.0, len(candidates) * p)  # Bonferroni: any of them can be the smaller one


def seeds_that_decide(evidence: Evidence, experiment: Experiment, alpha: float) -> tuple[int | None, str]:
    """The number of seeds that would support a claim if the paper's effect were true; or why it is unknown."""
    needed = []
    for finding in evidence.required:
        comparison = finding.comparison
        paper = papers_effect(comparison, evidence.claim.metric, experiment)
        if paper is None:
            return None, "the paper prints no number for it"
        if not comparison.low < paper < comparison.high:
            return None, "the paper's own numbers do not bear it out"
        if finding.estimate.error is None:
            return None, "a single seed shows no spread"
        seeds = seeds_needed(finding.estimate, (float(paper) - comparison.low, comparison.high - float(paper)), alpha)
        if seeds is None:
            return None, _why_never(finding.estimate, evidence.claim.metric)
        needed.append(seeds)
    return max(needed), ""


def _why_never(estimate: Estimate, metric: str) -> str:
    """Why no number of seeds would support a claim; for held-out scores with what reduces their noise."""
    noise = "the noise of the answers that are scored" if estimate.example_error else "the noise"
    text = f"an effect of the paper's size is too small next to {noise} for any number of seeds"
    if estimate.example_error and metric in catalog.labels():
        text += "; more held-out text reduces it (`corpus.dev_share`, and `evaluation.num_pairs` as its limit)"
    return text


def _rounded(p: float) -> float:
    # The last bits of a tiny p differ from one processor to another; of equal evidence, all then show the first.
    return round(p, 12)
