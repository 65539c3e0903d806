"""Verdicts: what the seeds of a table say about the claims that its experiment makes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from statistics import fmean, mean

from albert_lab.report.statistics import Estimate, Sample, estimate, holm, seeds_needed
from albert_lab.studies.claim import AtChance, Claim, Greater, Labels, Monotone, Ordered, PeakAt, Ratio, Within
from albert_lab.studies.experiment import Experiment, scores
from albert_lab.studies.table import Row

ALPHA = 0.05
FEWEST_SEEDS = 3
CHANCE = (45.0, 55.0)  # percent of two equally frequent labels


class Decision(StrEnum):
    """What the runs say about a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Verdict:
    """A claim with its decision, and what it rests on.

    effect is of the weakest comparison of the claim, or of the one that speaks against it: in points for scores, as a
    factor for a ratio, else in the column's unit. of names its rows by weight. p is the claim's, after Holm's
    correction. papers_effect is the same comparison of the paper's cells. seeds are how many would decide an effect of
    the paper's size, and lack says why that is not known. reason says why a claim is not decided. alarmed counts the
    runs of its rows that carry an alarm.
    """

    claim: Claim
    decision: Decision
    of: tuple[tuple[float, Labels], ...] = ()
    effect: float | None = None
    interval: tuple[float, float] | None = None
    sd: float | None = None
    n: int = 0
    is_paired: bool = False
    p: float | None = None
    papers_effect: Decimal | None = None
    seeds: int | None = None
    lack: str = ""
    reason: str = ""
    alarmed: int = 0


@dataclass(frozen=True)
class Comparison:
    """A weighted sum of row means that a claim says to be strictly between two bounds.

    One that is not required speaks against the claim where it lies outside, and never for it.
    """

    weights: tuple[tuple[float, Labels], ...]
    low: float = -math.inf
    high: float = math.inf
    is_required: bool = True
    is_log: bool = False


@dataclass(frozen=True)
class _Finding:
    """A comparison with its estimate; for and against are two-sided p-values."""

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
    def is_inside(self) -> bool:
        """The whole interval lies between the bounds."""
        found = self.estimate.interval
        return found is not None and self.comparison.low < found[0] and found[1] < self.comparison.high

    @property
    def is_outside(self) -> bool:
        """The whole interval lies beyond one of the bounds."""
        found = self.estimate.interval
        return found is not None and (found[1] < self.comparison.low or self.comparison.high < found[0])


@dataclass(frozen=True)
class _Evidence:
    """All findings of one claim: it holds where every required one does, and fails where any one does.

    vacuity says why its holding would tell nothing; None where it would.
    """

    claim: Claim
    findings: tuple[_Finding, ...]
    vacuity: str | None
    alarmed: int

    @property
    def required(self) -> list[_Finding]:
        return [finding for finding in self.findings if finding.comparison.is_required]

    @property
    def weakest(self) -> _Finding:
        return max(self.required, key=lambda finding: finding.support)

    @property
    def strongest_against(self) -> _Finding:
        return min(self.findings, key=lambda finding: finding.denial)

    @property
    def denial(self) -> float:
        return min(1.0, len(self.findings) * self.strongest_against.denial)  # Bonferroni: any one of them denies

    @property
    def speaks_against(self) -> bool:
        return self.denial < self.weakest.support or any(finding.is_outside for finding in self.findings)

    @property
    def p(self) -> float:
        return self.denial if self.speaks_against else self.weakest.support

    @property
    def n(self) -> int:
        return min(finding.estimate.n for finding in self.findings)


def decide(experiment: Experiment, table: Sequence[Row], columns: Mapping[str, str] | None = None) -> list[Verdict]:
    """A verdict for each claim of an experiment, in its order; all claims of one table are one family for Holm.

    Supported: the claim's p-value stays below ALPHA after the correction, and its 95 % interval lies where the claim
    says. Not supported: the same, elsewhere. Undecided: neither, or fewer than FEWEST_SEEDS seeds, or at chance in a
    table where no row is above chance.

    Args:
        experiment: its claims, and the paper's cells.
        table: the rows of the experiment's table.
        columns: the column of the table of runs that holds a metric, where it has another name.
    """
    names = columns or {}
    found = [_gather(claim, experiment, table, names.get(claim.metric, claim.metric)) for claim in experiment.claims]
    run = [evidence for evidence in found if isinstance(evidence, _Evidence)]
    tested = [evidence for evidence in run if evidence.n >= FEWEST_SEEDS]
    adjusted = dict(zip(map(id, tested), holm([evidence.p for evidence in tested]), strict=True))
    return [
        item if isinstance(item, Verdict) else _verdict(item, adjusted.get(id(item)), experiment, ALPHA / len(run))
        for item in found
    ]


def comparisons(claim: Claim, experiment: Experiment) -> list[Comparison]:
    """What a claim comes down to: weighted sums of row means, each with the bounds it must lie between."""
    rows = claim.rows(experiment.grid)
    match claim:
        case Greater():
            if isinstance(claim.than, dict):
                return [_difference(claim.row, claim.than, low=0.0)]
            return [Comparison(((1.0, claim.row),), low=claim.than)]
        case Within():
            return [_difference(claim.row, claim.of, low=-claim.margin, high=claim.margin)]
        case Ordered():
            return [_difference(better, worse, low=0.0) for better, worse in pairwise(rows)]
        case AtChance():
            return [Comparison(((1.0, claim.row),), *CHANCE)]
        case Ratio():
            low = -math.inf if claim.low is None else math.log(claim.low)
            high = math.inf if claim.high is None else math.log(claim.high)
            return [Comparison(((1.0, claim.row), (-1.0, claim.to)), low, high, is_log=True)]
        case PeakAt():
            peak = claim.where | {claim.axis: claim.at}
            return [_difference(peak, row, low=0.0) for row in rows if row != peak]
        case Monotone():
            rising = rows if claim.direction == "rising" else rows[::-1]
            steps = [_difference(after, before, low=0.0, is_required=False) for before, after in pairwise(rising)]
            return [_rise(rising), *steps] if len(rising) > 2 else [_rise(rising)]


def _difference(
    row: Labels, other: Labels, *, low: float, high: float = math.inf, is_required: bool = True
) -> Comparison:
    return Comparison(((1.0, row), (-1.0, other)), low, high, is_required)


def _rise(rows: Sequence[Labels]) -> Comparison:
    """The rise from a row to the next, as the slope of least squares over their ranks."""
    middle = (len(rows) - 1) / 2
    scale = sum((place - middle) ** 2 for place in range(len(rows)))
    return Comparison(tuple(((place - middle) / scale, row) for place, row in enumerate(rows)), low=0.0)


def _gather(claim: Claim, experiment: Experiment, table: Sequence[Row], column: str) -> _Evidence | Verdict:
    """The findings of a claim; a verdict at once where the table does not hold what it needs."""
    found: dict[str, Row] = {}
    for labels in claim.rows(experiment.grid):
        rows = [row for row in table if labels.items() <= row.labels.items()]
        if len(rows) > 1:
            extra = ", ".join(axis for axis in rows[0].labels if axis not in labels)
            return Verdict(claim, Decision.UNDECIDED, reason=f"several rows are {name(labels)}: they differ in {extra}")
        if not rows or not sample(rows[0], claim.metric, column):
            missing = f"no finished run with {column} is {name(labels)}"
            return Verdict(claim, Decision.NOT_RUN, reason=missing)
        found[name(labels)] = rows[0]
    runs = [run for row in found.values() for run in row.runs]
    if len({run["run"] for run in runs}) < len(runs):
        return Verdict(claim, Decision.UNDECIDED, reason="at this scale rows of the claim are the same runs")
    findings = []
    for comparison in comparisons(claim, experiment):
        samples = [sample(found[name(labels)], claim.metric, column) for _, labels in comparison.weights]
        if comparison.is_log:
            if any(value <= 0 for values in samples for value in values.values()):
                return Verdict(claim, Decision.UNDECIDED, reason=f"{column} is not positive: no ratio")
            samples = [{seed: math.log(value) for seed, value in values.items()} for values in samples]
        step = 0.0 if comparison.is_log else max(resolution(row, claim.metric, column) for row in found.values())
        weights = [weight for weight, _ in comparison.weights]
        findings.append(_Finding(comparison, estimate(samples, weights, step)))
    vacuity = _vacuity(table, claim.metric, column) if isinstance(claim, AtChance) else None
    return _Evidence(claim, tuple(findings), vacuity, sum(isinstance(run.get("alarms"), str) for run in runs))


def _vacuity(table: Sequence[Row], metric: str, column: str) -> str | None:
    """Why a row at chance tells nothing: no row of the table is above chance; None where one is."""
    found: dict[str, Estimate] = {}
    for row in table:
        if values := sample(row, metric, column):
            found[name(row.labels)] = estimate([values], resolution=resolution(row, metric, column))
    if any(each.interval and each.interval[0] > CHANCE[1] for each in found.values()):
        return None
    best = max(found, key=lambda label: found[label].value)
    return f"no row is shown to have learnt this task: the best, {best}, is at {found[best].value:.1f} %"


def name(labels: Labels) -> str:
    """A row in one line: axis=label."""
    return " ".join(f"{axis}={label}" for axis, label in labels.items())


def sample(row: Row, metric: str, column: str) -> Sample:
    """A metric by pre-training seed."""
    return {run["seed"]: float(run[column]) for run in row.having(column)}


def resolution(row: Row, metric: str, column: str) -> float:
    """The step of one answer more or less, in points, for a score over so many answers; 0 for what is not counted."""
    answers = [run[f"{column}_n"] for run in row.runs if run.get(f"{column}_n", math.nan) > 0]
    return 100.0 / fmean(answers) if answers and metric in scores() else 0.0


def _verdict(evidence: _Evidence, p: float | None, experiment: Experiment, alpha: float) -> Verdict:
    finding = evidence.strongest_against if evidence.speaks_against else evidence.weakest
    decision, reason = Decision.UNDECIDED, ""
    if p is None:
        reason = f"{evidence.n} of at least {FEWEST_SEEDS} seeds"
    elif p < ALPHA and evidence.speaks_against and finding.is_outside:
        decision = Decision.NOT_SUPPORTED
    elif p < ALPHA and not evidence.speaks_against and all(each.is_inside for each in evidence.required):
        decision, reason = (Decision.UNDECIDED, evidence.vacuity) if evidence.vacuity else (Decision.SUPPORTED, "")
    found, is_log = finding.estimate, finding.comparison.is_log
    interval = found.interval
    if is_log and interval:
        interval = (math.exp(interval[0]), math.exp(interval[1]))
    paper = papers_effect(finding.comparison, evidence.claim.metric, experiment)
    seeds, lack = None, ""
    if decision is Decision.UNDECIDED and reason != evidence.vacuity:
        seeds, lack = _seeds(evidence, experiment, alpha)
    return Verdict(
        evidence.claim,
        decision,
        finding.comparison.weights,
        math.exp(found.value) if is_log else found.value,
        interval,
        found.sd,
        evidence.n,
        found.is_paired,
        p,
        paper.exp() if is_log and paper is not None else paper,
        seeds,
        lack,
        reason,
        evidence.alarmed,
    )


def _seeds(evidence: _Evidence, experiment: Experiment, alpha: float) -> tuple[int | None, str]:
    """How many seeds would show all that a claim requires if the truth were the paper's; or why it is not known."""
    needed = []
    for finding in evidence.required:
        comparison, sd = finding.comparison, finding.estimate.sd
        paper = papers_effect(comparison, evidence.claim.metric, experiment)
        if paper is None:
            return None, "the paper prints no number for it"
        if not comparison.low < paper < comparison.high:
            return None, "the paper's own numbers do not bear it out"
        if sd is None:
            return None, "a single seed shows no spread"
        seeds = seeds_needed(sd, (float(paper) - comparison.low, comparison.high - float(paper)), alpha)
        if seeds is None:
            return None, "an effect of the paper's size is too small beside the spread for any number of seeds"
        needed.append(seeds)
    return max(needed), ""


def papers_effect(comparison: Comparison, metric: str, experiment: Experiment) -> Decimal | None:
    """The paper's own value of a comparison, exact in its printed cells; None where it does not print all of them."""
    if experiment.paper is None:
        return None
    total = Decimal()
    for weight, labels in comparison.weights:
        cells = [row for row in experiment.paper.rows if labels.items() <= row.items()]
        if len(cells) != 1 or metric not in cells[0]:
            return None
        value = printed(cells[0][metric])
        if value is None or (comparison.is_log and value <= 0):
            return None
        total += Decimal(str(weight)) * (value.ln() if comparison.is_log else value)
    return total


def printed(cell: str) -> Decimal | None:
    """The number in a cell of the paper: 89.3/82.3 is the mean of both, 12M a number of millions, 1.7x a factor."""
    text, unit = cell.strip(), 1
    for suffix, factor in (("M", 10**6), ("x", 1), ("%", 1)):
        if text.endswith(suffix):
            text, unit = text.removesuffix(suffix), factor
    try:
        return unit * mean(Decimal(part) for part in text.split("/"))
    except InvalidOperation:
        return None
