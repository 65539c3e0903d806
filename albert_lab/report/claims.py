"""Verdicts: the claims of an experiment, tested on the seeds of its table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Literal

from albert_lab.analysis import looks
from albert_lab.analysis.papers_numbers import papers_effect
from albert_lab.measures import catalog
from albert_lab.report.alarms import RowAlarm, held_out
from albert_lab.report.speedups import are_of_different_hardware
from albert_lab.report.statistics import Estimate, holm, seeds_needed
from albert_lab.report.table_scores import AVERAGE_LEARNT, AVERAGE_LIKELIHOOD, MLM_LIKELIHOOD, TableScores
from albert_lab.runs.layer_numbers import LAYER_NUMBERS
from albert_lab.runs.results import INFERENCE_SPEED, TRAINING_SPEED
from albert_lab.studies.checks import AtChance, Claim
from albert_lab.studies.claim import Comparison, name
from albert_lab.studies.experiment import AVERAGE, Experiment
from albert_lab.studies.seed_plan import SeedPlan
from albert_lab.studies.table import Row

ALPHA = 0.05
FEWEST_SEEDS = 3
LEAST_CHANCE = 0.1  # of a decision at the last look: below it, a study does not go on for a claim
# The accuracy that shows whether a row has learnt what a metric without a floor of its own measures.
_LEARNT_BY = {MLM_LIKELIHOOD: "mlm_accuracy", AVERAGE_LIKELIHOOD: AVERAGE_LEARNT} | dict.fromkeys(
    LAYER_NUMBERS, "mlm_accuracy"
)


class Decision(StrEnum):
    """The decision of the runs on a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    UNDECIDED = "undecided"
    NOT_LEARNT = "not learnt"
    NOT_RUN = "not run"


Samples = Literal["seed", "round"]


@dataclass(frozen=True)
class Verdict:
    """A claim with its decision and the evidence.

    Attributes:
        claim: the claim.
        decision: the verdict.
        comparison: the weakest comparison of the claim, or the one that contradicts it.
        effect: of that comparison: in points for scores, as a factor for a ratio, else in the column's unit.
        interval: its 95 % interval.
        n: number of seeds, or of rounds of a measurement side by side.
        n_of: which of both.
        is_paired: whether effects that a seed has on all rows are removed.
        p: of the claim, after Holm's correction.
        papers_effect: the same comparison of the paper's cells.
        seeds: the number that would decide an effect of the paper's size.
        lack: the reason if that number is unknown.
        reason: the reason if the claim is not decided.
        alarms: the alarms of its rows on held-out scores.
        level: the level of p: of this look, if looks were planned.
        chance: of a decision at the last look, if it is undecided and looks are left.
    """

    claim: Claim
    decision: Decision
    comparison: Comparison | None = None
    effect: float | None = None
    interval: tuple[float, float] | None = None
    n: int = 0
    n_of: Samples = "seed"
    is_paired: bool = False
    p: float | None = None
    papers_effect: Decimal | None = None
    seeds: int | None = None
    lack: str = ""
    reason: str = ""
    alarms: tuple[RowAlarm, ...] = ()
    level: float = ALPHA
    chance: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether the looks that are left can decide it."""
        is_early = 0 < self.n < FEWEST_SEEDS
        return self.decision is Decision.UNDECIDED and (is_early or (self.chance or 0.0) >= LEAST_CHANCE)


@dataclass(frozen=True)
class _Finding:
    """A comparison with its estimate; its p-values for and against are two-sided.

    is_evidence: whether all of its rows have learnt the metric.
    """

    comparison: Comparison
    estimate: Estimate
    is_evidence: bool

    @cached_property
    def support(self) -> float:
        bounds = (self.estimate.above(self.comparison.low), self.estimate.below(self.comparison.high))
        return min(1.0, 2 * max(p for p, bound in zip(bounds, self._bounds, strict=True) if math.isfinite(bound)))

    @cached_property
    def denial(self) -> float:
        bounds = (self.estimate.below(self.comparison.low), self.estimate.above(self.comparison.high))
        return min(1.0, 2 * min(p for p, bound in zip(bounds, self._bounds, strict=True) if math.isfinite(bound)))

    def chance(self, last: int, alpha: float) -> tuple[float, float]:
        """The chance that it supports the claim after the last number of seeds, and that it denies it."""
        found, distances = self.estimate, []
        if found.error is None or found.df is None:
            return 0.0, 0.0
        for bound, sign in zip(self._bounds, (1, -1), strict=True):
            distances += [sign * (found.value - bound)] if math.isfinite(bound) else []
        given = (found.error, found.df, found.example_error, found.n, last, alpha)
        above = [looks.chance_to_exceed(distance, *given) for distance in distances]
        beyond = [looks.chance_to_exceed(-distance, *given) for distance in distances]
        return min(above), max(beyond)

    @property
    def _bounds(self) -> tuple[float, float]:
        return self.comparison.low, self.comparison.high

    @property
    def is_outside(self) -> bool:
        """Whether the whole interval is beyond one of the bounds."""
        found = self.estimate.interval
        return found is not None and (found[1] < self.comparison.low or self.comparison.high < found[0])


@dataclass(frozen=True)
class _Evidence:
    """All findings of one claim: it is true if all required ones are, and false if any one is false.

    not_learnt is the reason why its rows cannot support it; empty if they can. Findings of which all rows have learnt
    can still deny it. n_of is what its samples are over.
    """

    claim: Claim
    findings: tuple[_Finding, ...]
    not_learnt: str
    alarms: tuple[RowAlarm, ...]
    n_of: Samples

    @property
    def required(self) -> list[_Finding]:
        return [finding for finding in self.findings if finding.comparison.is_required]

    @property
    def weakest(self) -> _Finding:
        return max(self.required, key=lambda finding: _rounded(finding.support))

    @property
    def strongest_against(self) -> _Finding:
        usable = [finding for finding in self.findings if finding.is_evidence]
        return min(usable or self.findings, key=lambda finding: _rounded(finding.denial))

    @property
    def denial(self) -> float:
        # Bonferroni: any of them can deny the claim
        return min(1.0, len(self.findings) * self.strongest_against.denial)

    @property
    def speaks_against(self) -> bool:
        return self.denial < self.weakest.support or any(finding.is_outside for finding in self.findings)

    @property
    def p(self) -> float:
        return self.denial if self.not_learnt or self.speaks_against else self.weakest.support

    @property
    def n(self) -> int:
        return min(finding.estimate.n for finding in self.findings)

    @property
    def is_tested(self) -> bool:
        can_deny = any(finding.is_evidence for finding in self.findings)
        return self.n >= FEWEST_SEEDS and (not self.not_learnt or can_deny)


def decide(experiment: Experiment, table: Sequence[Row], plan: SeedPlan | None = None) -> list[Verdict]:
    """A verdict for each claim of an experiment, in its order; all claims of one table are one family for Holm.

    Supported: the claim's p-value is below the level of its look after the correction; without a plan, below ALPHA.
    Not supported: that of the opposite is. Not learnt: a compared row is at the floor, so it has learnt nothing, and no
    comparison of two other rows denies the claim; or the claim is about the level of one row, such as chance, and no
    row of the table has learnt the metric. Undecided: neither, or fewer than FEWEST_SEEDS seeds.
    Not run: a row has no scores.

    Args:
        experiment: its claims, and the paper's cells.
        table: the rows of the experiment's table.
        plan: the plan of seeds of the study.
    """
    return _decide(experiment.claims, experiment, TableScores(table), plan)


def companions(experiment: Experiment, table: Sequence[Row], plan: SeedPlan | None = None) -> list[Verdict]:
    """Verdicts on the claims about the downstream average by other measures of the same rows, as a separate family.

    None of them is the paper's metric: the average without tasks that no row has learnt, if there are any; minus the
    held-out MLM loss; minus the loss of the fine-tuned tasks. There is no verdict for a measure that no run has, or for
    a claim that names a number, such as a margin in points.

    Source: Magnusson et al., DataDecide (2025, arXiv 2504.11393): likelihoods are the most informative at small scales.
    """
    scores = TableScores(table)
    measures = [AVERAGE_LEARNT] if scores.unlearnt_tasks and scores.learnt_tasks else []
    measures += [MLM_LIKELIHOOD, AVERAGE_LIKELIHOOD]
    known = [measure for measure in measures if any(scores.sample(row, measure) for row in scores.table)]
    claims = [
        claim.model_copy(update={"metric": measure})
        for claim in experiment.claims
        for measure in known
        if claim.metric == AVERAGE and (claim.is_of_order or measure == AVERAGE_LEARNT)
    ]
    return _decide(claims, experiment, scores, plan)


def _decide(
    claims: Sequence[Claim], experiment: Experiment, scores: TableScores, plan: SeedPlan | None
) -> list[Verdict]:
    found = [_gather(claim, experiment, scores) for claim in claims]
    run = [evidence for evidence in found if isinstance(evidence, _Evidence)]
    tested = [evidence for evidence in run if evidence.is_tested]
    adjusted = dict(zip(map(id, tested), holm([evidence.p for evidence in tested]), strict=True))
    steps = looks.levels(plan.looks, plan.spending, ALPHA, len(run)) if plan and run else ()
    return [
        item
        if isinstance(item, Verdict)
        else _verdict(item, adjusted.get(id(item)), experiment, _Looks(plan, steps, len(run)))
        for item in found
    ]


@dataclass(frozen=True)
class _Looks:
    """The plan of a study with the level of each look, for Holm's p-values of a number of claims."""

    plan: SeedPlan | None
    levels: Sequence[float]
    claims: int

    def level(self, evidence: _Evidence) -> float:
        """The level that a claim needs."""
        if self.plan is None or evidence.n_of == "round":
            return ALPHA
        return self.levels[self.plan.look_of(evidence.n) - 1]

    def chance(self, evidence: _Evidence) -> float | None:
        """The chance that the last look decides a claim; None if no look is left."""
        last = self.plan.looks[-1] if self.plan and evidence.n_of == "seed" else 0
        if not 1 < evidence.n < last:
            return None
        alpha = self.levels[-1] / self.claims
        support = min(finding.chance(last, alpha)[0] for finding in evidence.required)
        denial = max(finding.chance(last, alpha / len(evidence.findings))[1] for finding in evidence.findings)
        return min(1.0, support + denial)


def _gather(claim: Claim, experiment: Experiment, scores: TableScores) -> _Evidence | Verdict:
    """The findings of a claim, or a verdict if the table lacks the data for them."""
    column = scores.column(claim.metric)
    found: dict[str, Row] = {}
    for labels in claim.rows(experiment.grid):
        rows = scores.rows(labels)
        if len(rows) > 1:
            extra = ", ".join(axis for axis in rows[0].labels if axis not in labels)
            return Verdict(claim, Decision.UNDECIDED, reason=f"several rows are {name(labels)}: they differ in {extra}")
        if not rows or not scores.sample(rows[0], column):
            return Verdict(claim, Decision.NOT_RUN, reason=f"no run with {name(labels)} has {column}")
        found[name(labels)] = rows[0]
    runs = [run for row in found.values() for run in row.runs]
    if len({run.name for run in runs}) < len(runs):
        return Verdict(claim, Decision.UNDECIDED, reason="at this scale rows of the claim are the same runs")
    is_over_rounds = all(column in row.rounds for row in found.values())
    is_speed_of_runs = column in (TRAINING_SPEED, INFERENCE_SPEED) and not is_over_rounds
    if is_speed_of_runs and are_of_different_hardware(list(found.values())):
        return Verdict(claim, Decision.UNDECIDED, reason="its rows were computed on different devices or machines")
    rows = list(found.values())
    not_learnt, low = _not_learnt(claim, rows, scores, column)
    at_floor = {id(row) for row in low}
    findings = []
    for comparison in claim.comparisons(experiment.grid):
        weights = [(weight, found[name(labels)]) for weight, labels in comparison.weights]
        if comparison.is_log and any(
            value <= 0 for row in scores.table for value in scores.sample(row, column).values()
        ):
            return Verdict(claim, Decision.UNDECIDED, reason=f"{column} is not positive: no ratio")
        estimate = scores.estimate(weights, column, is_log=comparison.is_log)
        findings.append(_Finding(comparison, estimate, all(id(row) not in at_floor for _, row in weights)))
    raised = tuple(held_out(rows))
    return _Evidence(claim, tuple(findings), not_learnt, raised, "round" if is_over_rounds else "seed")


def _not_learnt(claim: Claim, rows: Sequence[Row], scores: TableScores, column: str) -> tuple[str, Sequence[Row]]:
    """The reason, from their floors, why the rows of a claim cannot support it, empty if they can; and those rows.

    If the claim is only about its level, a row can be at chance on purpose. This is evidence if another row shows that
    the metric can be learnt, and this row has learnt the task that it was trained for. For a metric without a floor of
    its own, an accuracy shows whether a row has learnt it.
    """
    if isinstance(claim, AtChance) and claim.trained_for and scores.is_at_floor(rows[0], claim.trained_for):
        return f"{name(rows[0].labels)} is at the floor of {claim.trained_for}, which it was trained for", rows
    shown_by = _LEARNT_BY.get(column)
    if claim.level is None or shown_by:
        low = [row for row in rows if scores.is_at_floor(row, shown_by or column)]
        names = ", ".join(name(row.labels) for row in low)
        return f"at the floor{f' of {shown_by}' if shown_by else ''}: {names}" if low else "", low
    has_floor = isinstance(claim, AtChance) or any(scores.floor(row, column) is not None for row in rows)
    if not has_floor or scores.shows_learning(column, claim.level):
        return "", []
    label, best = scores.best(column)
    return f"no row is clearly above {claim.level:g} %: the best, {label}, is at {best:.1f} %", rows


def _verdict(evidence: _Evidence, p: float | None, experiment: Experiment, planned: _Looks) -> Verdict:
    level = planned.level(evidence)
    finding = evidence.strongest_against if evidence.speaks_against else evidence.weakest
    decision, reason = Decision.UNDECIDED, ""
    if evidence.n < FEWEST_SEEDS:
        reason = f"{evidence.n} of at least {FEWEST_SEEDS} {evidence.n_of}s"
    elif evidence.not_learnt and (p is None or p >= level):
        decision, reason, p = Decision.NOT_LEARNT, evidence.not_learnt, None
    elif p is not None and p < level:
        decision = Decision.NOT_SUPPORTED if evidence.speaks_against else Decision.SUPPORTED
    found, is_log = finding.estimate, finding.comparison.is_log
    interval = found.interval
    if is_log and interval:
        interval = (math.exp(interval[0]), math.exp(interval[1]))
    paper = papers_effect(finding.comparison, evidence.claim.metric, experiment)
    is_undecided = decision is Decision.UNDECIDED
    seeds, lack = _seeds(evidence, experiment, level / planned.claims) if is_undecided else (None, "")
    return Verdict(
        evidence.claim,
        decision,
        finding.comparison,
        math.exp(found.value) if is_log else found.value,
        interval,
        evidence.n,
        evidence.n_of,
        found.is_paired,
        p,
        paper.exp() if is_log and paper is not None else paper,
        seeds,
        lack,
        reason,
        evidence.alarms,
        level,
        planned.chance(evidence) if is_undecided else None,
    )


def _seeds(evidence: _Evidence, experiment: Experiment, alpha: float) -> tuple[int | None, str]:
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


def _why_never(found: Estimate, metric: str) -> str:
    """Why no number of seeds would support a claim; for held-out scores with what reduces their noise."""
    noise = "the noise of the answers that are scored" if found.example_error else "the noise"
    text = f"an effect of the paper's size is too small next to {noise} for any number of seeds"
    if found.example_error and metric in catalog.labels():
        text += "; more held-out text reduces it (`corpus.dev_share`, and `evaluation.num_pairs` as its limit)"
    return text


def _rounded(p: float) -> float:
    # The last bits of a tiny p differ from one processor to another; of equal evidence, all then show the first.
    return round(p, 12)
