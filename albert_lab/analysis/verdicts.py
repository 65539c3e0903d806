"""Verdicts: the claims of an experiment, tested on the frame of its study. Values alone; words are
report/wording.py's.

A claim on performance has two verdicts, by a loss and by tasks; any other claim has one.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from albert_lab.analysis.contrasts import Contrast, contrast, counts, holm, seeds_needed
from albert_lab.analysis.findings import ALPHA, Finding, decisive, exact, tested
from albert_lab.analysis.frame import PAPER, Frame, printed
from albert_lab.analysis.verdict import Effect, Form, Outcome, Reason, Verdict
from albert_lab.measures.catalog import labels, of_kind, probes, units
from albert_lab.measures.measure import Baseline
from albert_lab.model.counts import count
from albert_lab.runs.reported import AVERAGE, ReportedRun
from albert_lab.score import LINEAR_PROBE, loss_name
from albert_lab.studies.claims import (
    AtChance,
    BaseClaim,
    Comparison,
    Kind,
    Labels,
    is_loss,
    number_in,
)
from albert_lab.studies.grid import variants
from albert_lab.studies.study import Study
from albert_lab.tasks.task import task_names

# of a configuration: the same for all seeds, so one is enough
EXACT = ("parameters", "encoder_parameters")
Why = tuple[Reason | None, tuple[str, ...]]  # the reason and the details of a Verdict


@dataclass(frozen=True)
class _Table:
    """A study with its frame: what a claim is tested on."""

    study: Study
    frame: Frame

    @property
    def measured(self) -> set[str]:
        """The scores on held-out text of its runs, those of own code among them."""
        return {name for run in self.study.runs for name in run.record.scores}

    def name(self, labels: Labels) -> str:
        return self.frame.row(labels) or ", ".join(labels.values())

    def names(self, claim: BaseClaim) -> list[str]:
        """The names of the rows of a claim, each once."""
        return list(dict.fromkeys(self.name(row) for row in claim.rows(self.study.experiment.grid)))

    def lacks(self, metric: str, rows: Iterable[str]) -> bool:
        return not {*rows} <= self.frame.samples(metric).keys()

    def runs(self, metric: str, rows: Collection[str]) -> list[ReportedRun]:
        """The runs of some rows that have a metric."""
        samples = self.frame.samples(metric)
        names = {name for row in rows for name in samples[row].runs}
        return [run for run in self.study.runs if run.name in names]

    def floors(self, metric: str, kind: str) -> dict[str, float]:
        """The mean of a column of the numbers, such as floor, by row; NaN for one without any."""
        numbers: Any = self.frame.of(metric)
        return numbers[kind].astype(float).groupby(numbers["row"]).mean().to_dict()

    def is_above_floor(self, metric: str, row: str) -> bool:
        floor = self.floors(metric, "floor").get(row, math.nan)
        return math.isnan(floor) or not contrast(self.frame, metric, {row: 1.0}).low <= floor


def verdicts(study: Study, frame: Frame) -> list[Verdict]:
    """The verdicts on the claims of the study's experiment, in its order, by loss before by tasks.

    A claim is supported if p is below 0.05, not supported if that of its opposite is, and undecided
    otherwise. Nothing can be told if a row or score is missing, no row has learnt the score, or it
    is a task that does not count.
    """
    table = _Table(study, frame)
    claims = study.experiment.claims
    tested = [
        _verdict(claim, kind, table) for claim in claims for kind in kinds(claim, table.measured)
    ]
    for kind in Kind:
        places = [place for place, verdict in enumerate(tested) if verdict.kind is kind]
        adjusted = holm([tested[place].p for place in places])
        for place, p in zip(places, adjusted, strict=True):
            outcome = tested[place].outcome
            if p >= ALPHA and outcome in (Outcome.SUPPORTED, Outcome.NOT_SUPPORTED):
                outcome = Outcome.UNDECIDED
            tested[place] = replace(tested[place], p=p, outcome=outcome)
    return tested


def kinds(claim: BaseClaim, measured: Collection[str] = ()) -> list[Kind]:
    """The kinds of evidence by which a claim is decided; measured are scores on held-out text
    beside the catalog's.
    """
    return list(dict.fromkeys(_kind(metric, measured) for metric in claim.metrics))


def _kind(metric: str, measured: Collection[str] = ()) -> Kind:
    if metric in (*task_names(), AVERAGE) or metric.partition("_")[0] in task_names():
        return Kind.TASKS
    return Kind.LOSS if metric in labels() or metric in measured or is_loss(metric) else Kind.NUMBER


def is_of_one_set(metric: str, runs: Iterable[ReportedRun]) -> bool:
    """Whether these runs were scored on one held-out set, or the metric is none of held-out
    text.
    """
    sets = {run.record.evaluation_set for run in runs}
    return len(sets) < 2 or metric not in {*units(), *map(loss_name, units())}


def _verdict(claim: BaseClaim, kind: Kind, table: _Table) -> Verdict:
    """The verdict before Holm's correction."""
    if claim.at_scale:
        return _by_arithmetic(claim, kind, table)
    metrics = [
        metric
        for metric in claim.metrics
        if claim.by is None or _kind(metric, table.measured) is kind
    ]
    open_verdict = Verdict(claim, kind, metrics[0], Outcome.CANNOT_TELL)
    grid = table.study.experiment.grid
    added = [axis for axis in table.study.axes if axis not in grid] if table.study.points else []
    if added:
        return replace(open_verdict, reason=Reason.SEVERAL_ROWS, details=tuple(added))
    missing = [table.name(row) for row in claim.rows(grid) if table.frame.row(row) is None]
    not_run = replace(open_verdict, outcome=Outcome.NOT_RUN)
    if missing:
        return replace(not_run, reason=Reason.NO_ROW, details=tuple(dict.fromkeys(missing)))
    rows = table.names(claim)
    measured = [metric for metric in metrics if not table.lacks(metric, rows)]
    if not measured:
        return replace(not_run, reason=Reason.NOT_MEASURED, details=tuple(metrics))
    metric = next((name for name in measured if counts(table.frame, name)), measured[0])
    return _of_metric(
        claim,
        replace(open_verdict, metric=_on_equal_terms(claim, metric, rows, table)),
        rows,
        table,
    )


def _on_equal_terms(claim: BaseClaim, metric: str, rows: list[str], table: _Table) -> str:
    """The metric, or the score of its probe if only some of the rows have a head for it."""
    probe = next((probe for probe, name in probes().items() if name == metric), None)
    methods = {
        run.scores[metric].by == LINEAR_PROBE
        for run in table.runs(metric, rows)
        if metric in run.scores
    }
    is_mixed = len(methods) > 1 and claim.equal_terms
    return probe if probe and is_mixed and not table.lacks(probe, rows) else metric


def _of_metric(claim: BaseClaim, verdict: Verdict, rows: list[str], table: _Table) -> Verdict:
    """The verdict by a metric that all rows of the claim have."""
    frame = table.frame
    metric = verdict.metric
    if len({frame.samples(metric)[row].runs for row in rows}) < len(rows):
        return replace(verdict, reason=Reason.SAME_RUNS)
    if len(rows) > 1 and not is_of_one_set(metric, table.runs(metric, rows)):
        return replace(verdict, reason=Reason.OTHER_SETS)
    comparisons = claim.comparisons_of(metric, table.study.experiment.grid)
    contrast_of = _contrast_of(metric, rows, frame)
    finding = decisive([tested(item, table.name, contrast_of) for item in comparisons])
    accuracy = _accuracy(metric)
    verdict = replace(verdict, effect=_effect(finding, metric, table))
    if accuracy != metric and not table.lacks(accuracy, rows):
        # Of the same rows in the same order: where a loss is higher, its accuracy is lower.
        same_rows = Comparison(finding.comparison.weights)
        shown = tested(same_rows, table.name, partial(contrast, frame, accuracy))
        verdict = replace(verdict, beside=_effect(shown, accuracy, table))
    reason, details = _nothing_to_tell(claim, metric, rows, table)
    if reason:
        return replace(verdict, reason=reason, details=details)
    verdict = replace(verdict, seeds_needed=_seeds_needed(finding))
    if math.isnan(finding.contrast.p):
        is_ratio = math.isnan(finding.contrast.effect)
        return replace(
            verdict,
            outcome=Outcome.UNDECIDED,
            reason=Reason.NO_RATIO if is_ratio else Reason.TOO_FEW_RUNS,
        )
    decided = _decided(verdict, finding)
    is_above_level = claim.level is not None and math.isinf(finding.comparison.high)
    if decided.outcome is Outcome.SUPPORTED and is_above_level:
        reason, details = _why_a_level_shows_nothing(metric, rows[0], finding.contrast.low, table)
        if reason:
            return replace(decided, outcome=Outcome.CANNOT_TELL, reason=reason, details=details)
    return decided


def _accuracy(metric: str) -> str:
    """The accuracy that belongs to a loss; any other metric itself."""
    return f"{metric.removesuffix('_loss')}_accuracy" if is_loss(metric) else metric


def _seeds_needed(finding: Finding) -> int | None:
    found = finding.contrast
    comparison = finding.comparison
    distance = min(abs(found.effect - bound) for bound in (comparison.low, comparison.high))
    return (
        None
        if math.isnan(found.over_seeds)
        else seeds_needed(distance, found.over_seeds, found.over_documents)
    )


def _decided(verdict: Verdict, finding: Finding) -> Verdict:
    if finding.denial < finding.support:
        return replace(verdict, outcome=Outcome.NOT_SUPPORTED, p=finding.denial)
    return replace(verdict, outcome=Outcome.SUPPORTED, p=finding.support)


def _by_arithmetic(claim: BaseClaim, kind: Kind, table: _Table) -> Verdict:
    """The verdict by parameters of the configurations of a scale, for which nothing is trained."""
    experiment = table.study.experiment
    metric = claim.metrics[0]
    sizes = dict[str, float]()
    for row in claim.rows(experiment.grid):
        overrides = [f"{axis}={label}" for axis, label in row.items()]
        (variant,) = variants(experiment, [f"scale={claim.at_scale}", "seed=0", *overrides])
        sizes[table.name(row)] = count(variant.config).total
    tests = claim.comparisons(experiment.grid)
    finding = decisive([tested(item, table.name, partial(exact, sizes)) for item in tests])
    effect = _effect(finding, metric, table)
    return _decided(Verdict(claim, kind, metric, Outcome.CANNOT_TELL, effect), finding)


def _contrast_of(metric: str, rows: Collection[str], frame: Frame) -> Callable[..., Contrast]:
    """What computes contrasts of a metric: exact numbers have no spread."""
    if metric in EXACT:
        samples = frame.samples(metric)
        return partial(exact, {row: float(samples[row].values[0]) for row in rows})
    return partial(contrast, frame, metric)


def _effect(finding: Finding, metric: str, table: _Table) -> Effect:
    comparison = finding.comparison
    found = finding.contrast
    rows = tuple((weight, table.name(labels)) for weight, labels in comparison.weights)
    # In the order of the fields of an Effect.
    numbers = [comparison.low, comparison.high, found.effect, found.low, found.high]
    numbers.append(_paper(comparison, metric, table))
    segments = math.nan
    if comparison.is_log:
        form = Form.RATIO
        numbers = [math.exp(number) for number in numbers]
    elif len(rows) == 1:
        form = Form.LEVEL
        segments = table.floors(metric, "segments")[rows[0][1]]
    else:
        form = Form.SLOPE if comparison.is_slope else Form.DIFFERENCE
    unit = table.frame.unit(metric)
    return Effect(metric, unit, form, rows, *numbers, segments=segments)


def _paper(comparison: Comparison, metric: str, table: _Table) -> float:
    """The same comparison of the paper's cells, or of what was read off its figure; NaN if one of
    them is missing.
    """
    values = [_papers_number(labels, metric, table) for _, labels in comparison.weights]
    if comparison.is_log:
        values = [math.log(value) if value > 0 else math.nan for value in values]
    return sum(
        weight * value for (weight, _), value in zip(comparison.weights, values, strict=True)
    )


def _papers_number(labels: Labels, metric: str, table: _Table) -> float:
    cells = table.frame.cells.get(PAPER + metric)
    if cells:
        return printed(cells[table.name(labels)])
    figure = table.study.experiment.paper_figure
    read_off = figure.numbers.get(metric, {}) if figure else {}
    return next((read_off[label] for label in labels.values() if label in read_off), math.nan)


def _nothing_to_tell(claim: BaseClaim, metric: str, rows: list[str], table: _Table) -> Why:
    """Why nothing can be told of a claim although its rows have the metric; None if something
    can.
    """
    frame = table.frame
    for key, needed in claim.needs.items():
        sizes = [number_in(str(run.record.config.value(key))) for run in table.runs(metric, rows)]
        known = [size for size in sizes if size is not None]
        here = min(known, default=needed) if known == sizes else math.nan
        if not here >= needed:
            return Reason.TOO_SMALL, (key, f"{needed:g}", f"{here:g}")
    if not counts(frame, metric):
        return Reason.NOT_COUNTED, ()
    if (
        isinstance(claim, AtChance)
        and claim.trained_for
        and not table.is_above_floor(claim.trained_for, rows[0])
    ):
        return Reason.OWN_TASK_NOT_LEARNT, (claim.trained_for,)
    score = _accuracy(metric)  # a loss has no floor of its own
    floors = table.floors(score, "floor")
    if all(map(math.isnan, floors.values())):
        return None, ()
    # A level, such as chance, needs some row of the table above the floor; a difference one of its
    # own rows.
    others = list(floors) if claim.level is not None else rows
    is_learnt = any(table.is_above_floor(score, row) for row in others)
    return (None, ()) if is_learnt else (Reason.NOT_LEARNT, ())


def _why_a_level_shows_nothing(metric: str, row: str, low: float, table: _Table) -> Why:
    """Why a score that is above its bar shows nothing that was learnt of two segments; None if it
    does.

    Args:
        low: the lower end of its interval, which has to be above what is told without the model, or
            without the relation of the segments.
    """
    of_one_segment = table.floors(metric, "segments")[row]
    if of_one_segment >= low:
        return Reason.SEGMENTS_AS_HIGH, (f"{of_one_segment:.1f}",)
    for baseline in baselines_of(metric):
        if table.lacks(baseline.name, [row]):
            return Reason.BASELINE_NOT_MEASURED, ()
        if table.floors(baseline.name, "value")[row] >= low:
            return Reason.BASELINE_AS_HIGH, (baseline.name,)
    return None, ()


def baselines_of(metric: str) -> list[Baseline]:
    """What tells the pairs of a probe's score without what the model learnt."""
    return [measure for measure in of_kind(Baseline) if measure.pairs_of == probes().get(metric)]
