"""Verdicts: the claims of an experiment, tested on the seeds of its table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from albert_lab import score
from albert_lab.analysis.alarms import RowAlarm, held_out
from albert_lab.analysis.evidence import (
    ALPHA,
    FEWEST_SEEDS,
    Evidence,
    Finding,
    Samples,
    detectable_by,
    seeds_that_decide,
    smaller_than_paper,
    straddled,
)
from albert_lab.analysis.papers_numbers import papers_effect
from albert_lab.analysis.speedups import are_of_different_hardware
from albert_lab.analysis.statistics import holm
from albert_lab.analysis.table_scores import AVERAGE_LEARNT, AVERAGE_LIKELIHOOD, MLM_LIKELIHOOD, TableScores
from albert_lab.runs.results import INFERENCE_SPEED, TRAINING_SPEED
from albert_lab.studies.claims import CHANCE, AtChance, Claim, Comparison, Labels, Name
from albert_lab.studies.experiment import AVERAGE, Experiment
from albert_lab.studies.table import Row, RowNames
from albert_lab.training.layer_numbers import LAYER_NUMBERS

# The accuracy that shows whether a row has learnt what a metric without a floor of its own measures.
_LEARNT_BY = {MLM_LIKELIHOOD: "mlm_accuracy", AVERAGE_LIKELIHOOD: AVERAGE_LEARNT} | dict.fromkeys(
    LAYER_NUMBERS, "mlm_accuracy"
)
# What shows little of a model that has learnt a part of its training only.
_OF_WHOLE_MODEL = {AVERAGE, AVERAGE_LEARNT, AVERAGE_LIKELIHOOD, *LAYER_NUMBERS}


class Decision(StrEnum):
    """The decision of the runs on a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    SMALLER = "smaller than the paper's"
    UNDECIDED = "undecided"
    NOT_LEARNT = "not learnt"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Verdict:
    """A claim with its decision and the evidence.

    Attributes:
        comparison: the weakest comparison of the claim, or the one that contradicts it.
        effect: of that comparison: in points for scores, as a factor for a ratio, else in the column's unit.
        n: number of seeds, or of rounds of a measurement side by side.
        is_paired: whether effects that a seed has on all rows are removed.
        p: of the claim, after Holm's correction.
        papers_effect: the same comparison of the paper's cells.
        seeds: the number that would decide an effect of the paper's size.
        lack: the reason if that number is unknown.
        reason: the reason if the claim is not decided.
        alarms: the alarms of its rows on held-out scores.
        detectable: the smallest distance from its bound, or from both of them alike, that these seeds would show, if it
            is undecided; for a ratio, as a factor.
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
    detectable: float | None = None


def decide(experiment: Experiment, scores: TableScores) -> list[Verdict]:
    """A verdict for each claim of an experiment, in its order; all claims of one table are one family for Holm.

    Supported: the claim's p-value is below ALPHA after the correction.
    Not supported: that of the opposite is. Rows at the floor have learnt nothing and are left out of both. Not learnt:
    the other rows say nothing on the claim; or it is about the level of one row, such as chance, and no row of the
    table has learnt the metric. Smaller than the paper's: none of these, but the effect is below that of the paper's
    cells at the same level; such tests are a family of their own. Undecided: none of these, or fewer than FEWEST_SEEDS
    seeds. Not run: a row has no scores.
    """
    return _decide(experiment.claims, experiment, scores)


def companions(experiment: Experiment, scores: TableScores) -> list[Verdict]:
    """Verdicts on the claims about the downstream average by other measures of the same rows, as a separate family.

    None of them is the paper's metric: the average without tasks that no row has learnt, if there are any; minus the
    held-out MLM loss; minus the loss of the fine-tuned tasks. There is no verdict for a measure that no run has, or for
    a claim that names a number, such as a margin in points.

    Source: Magnusson et al., DataDecide (2025, arXiv 2504.11393): likelihoods are the most informative at small scales.
    """
    measures = [AVERAGE_LEARNT] if scores.unlearnt_tasks and scores.learnt_tasks else []
    measures += [MLM_LIKELIHOOD, AVERAGE_LIKELIHOOD]
    known = [measure for measure in measures if any(scores.sample(row, measure) for row in scores.table)]
    claims = [
        claim.model_copy(update={"metric": measure})
        for claim in experiment.claims
        for measure in known
        if claim.metric == AVERAGE and (claim.is_of_order or measure == AVERAGE_LEARNT)
    ]
    return _decide(claims, experiment, scores)


def _decide(claims: Sequence[Claim], experiment: Experiment, scores: TableScores) -> list[Verdict]:
    name = RowNames(experiment, scores.table)
    gathered = [_gather(claim, experiment, scores, name) for claim in claims]
    run = [evidence for evidence in gathered if isinstance(evidence, Evidence)]
    tested = [evidence for evidence in run if evidence.is_tested]
    adjusted = dict(zip(map(id, tested), holm([evidence.p for evidence in tested]), strict=True))
    open_ones = [finding for finding in tested if adjusted[id(finding)] >= ALPHA]
    below = {id(finding): item for finding in open_ones if (item := smaller_than_paper(finding, experiment))}
    smaller = dict(zip(below, holm([p for _, p in below.values()]), strict=True))
    return [
        item
        if isinstance(item, Verdict)
        else _verdict(
            item,
            adjusted.get(id(item)),
            (below[id(item)][0], smaller[id(item)]) if id(item) in below else None,
            experiment,
            ALPHA / len(run),
        )
        for item in gathered
    ]


def _gather(claim: Claim, experiment: Experiment, scores: TableScores, name: Name) -> Evidence | Verdict:
    """The findings of a claim, or a verdict if the table lacks the data for them."""
    column = scores.column(claim.metric)
    by_labels: dict[frozenset[tuple[str, str]], Row] = {}
    for labels in claim.rows(experiment.grid):
        rows = scores.rows(labels)
        if len(rows) > 1:
            extra = ", ".join(axis for axis in rows[0].labels if axis not in labels)
            return Verdict(claim, Decision.UNDECIDED, reason=f"several rows are {name(labels)}: they differ in {extra}")
        if not rows or not scores.sample(rows[0], column):
            return Verdict(claim, Decision.NOT_RUN, reason=f"no run with {name(labels)} has {column}")
        by_labels[_key(labels)] = rows[0]
    rows = list(by_labels.values())
    runs = [run for row in rows for run in row.runs]
    if len({run.name for run in runs}) < len(runs):
        return Verdict(claim, Decision.UNDECIDED, reason="at this scale rows of the claim are the same runs")
    if not scores.is_of_one_set(rows, column):
        return Verdict(claim, Decision.UNDECIDED, reason=f"its rows are scored on different sets in {column}")
    if column in (TRAINING_SPEED, INFERENCE_SPEED) and are_of_different_hardware(rows):
        return Verdict(claim, Decision.UNDECIDED, reason="its rows were computed on different devices or machines")
    not_learnt, low = _not_learnt(claim, rows, scores, column, name)
    at_floor = {id(row) for row in low}
    kept = [labels for labels in claim.rows(experiment.grid) if id(by_labels[_key(labels)]) not in at_floor]
    among = claim.comparisons_among(experiment.grid, kept)
    findings = []
    for comparison in among or claim.comparisons(experiment.grid):
        weights = [(weight, by_labels[_key(labels)]) for weight, labels in comparison.weights]
        if comparison.is_log and any(
            value <= 0 for row in scores.table for value in scores.sample(row, column).values()
        ):
            return Verdict(claim, Decision.UNDECIDED, reason=f"{column} is not positive: no ratio")
        estimate = scores.estimate(weights, column, is_log=comparison.is_log)
        findings.append(Finding(comparison, estimate))
    return Evidence(claim, tuple(findings), not_learnt, not among, tuple(held_out(rows)), "seed")


def _key(labels: Labels) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


def _not_learnt(
    claim: Claim, rows: Sequence[Row], scores: TableScores, column: str, name: Name
) -> tuple[str, Sequence[Row]]:
    """The reason, from their floors, why rows of a claim show nothing on it, and these rows; empty if there are none.

    If the claim is only about its level, a row can be at chance on purpose. This is evidence if another row shows that
    the metric can be learnt, and this row has learnt the task that it was trained for. For a metric without a floor of
    its own, an accuracy shows whether a row has learnt it; for one of the whole model, all losses of its training do.
    """
    if isinstance(claim, AtChance) and claim.trained_for and scores.is_at_floor(rows[0], claim.trained_for):
        return f"{name(rows[0].labels)} is at the floor of {claim.trained_for}, which it was trained for", rows
    shown_by = _LEARNT_BY.get(column)
    if claim.level is None or shown_by:
        low: list[Row] = []
        shown: dict[str, None] = {}
        for row in rows:
            failed = _failed(row, scores) if column in _OF_WHOLE_MODEL else []
            if failed or scores.is_at_floor(row, shown_by or column):
                low.append(row)
                shown |= dict.fromkeys(failed or filter(None, [shown_by]))
        names = "; ".join(name(row.labels) for row in low)
        return f"at the floor{' of ' if shown else ''}{' or '.join(shown)}: {names}" if low else "", low
    has_floor = isinstance(claim, AtChance) or any(scores.floor(row, column) is not None for row in rows)
    if not has_floor or scores.shows_learning(column, claim.level):
        return "", []
    best, mean = scores.best(column)
    level = f"chance ({claim.level:g} %)" if claim.level == CHANCE[1] else f"{claim.level:g} %"
    return f"no row is clearly above {level}: the best, {name(best.labels)}, is at {mean:.1f} %", rows


def _failed(row: Row, scores: TableScores) -> list[str]:
    """The scores of its own training that a row has not learnt: they raised alarms, and its mean is at the floor."""
    raised = {alarm.metric for run in row.runs for alarm in run.record.alarms if alarm.floor == score.CHANCE}
    return [metric for metric in sorted(raised) if scores.is_at_floor(row, metric)]


def _verdict(
    evidence: Evidence,
    p: float | None,
    smaller: tuple[Finding, float] | None,
    experiment: Experiment,
    level_of_one: float,
) -> Verdict:
    finding = evidence.strongest_against if evidence.speaks_against else evidence.weakest
    decision, reason = Decision.UNDECIDED, ""
    if evidence.n < FEWEST_SEEDS:
        reason = f"{evidence.n} of at least {FEWEST_SEEDS} {evidence.n_of}s"
    elif evidence.shows_nothing:
        decision, reason = Decision.NOT_LEARNT, evidence.not_learnt
    else:
        reason = f"without rows {evidence.not_learnt}" if evidence.not_learnt else ""
    if p is not None and p < ALPHA:
        decision = Decision.NOT_SUPPORTED if evidence.speaks_against else Decision.SUPPORTED
    elif smaller is not None and smaller[1] < ALPHA:
        decision, (finding, p) = Decision.SMALLER, smaller
    estimate, is_log = finding.estimate, finding.comparison.is_log
    interval = estimate.interval
    if is_log and interval:
        interval = (math.exp(interval[0]), math.exp(interval[1]))
    paper = papers_effect(finding.comparison, evidence.claim.metric, experiment)
    is_undecided = decision is Decision.UNDECIDED
    if is_undecided and not reason:
        reason = straddled(evidence.claim, finding)
    seeds, lack = seeds_that_decide(evidence, experiment, level_of_one) if is_undecided else (None, "")
    return Verdict(
        evidence.claim,
        decision,
        finding.comparison,
        math.exp(estimate.value) if is_log else estimate.value,
        interval,
        evidence.n,
        evidence.n_of,
        estimate.is_paired,
        p,
        paper.exp() if is_log and paper is not None else paper,
        seeds,
        lack,
        reason,
        evidence.alarms,
        detectable_by(finding, level_of_one) if is_undecided else None,
    )
