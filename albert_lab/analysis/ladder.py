"""The analysis of a ladder: the effect of each contrast at each rung, its trend, and how well lower rungs predict."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean

from albert_lab.analysis import ladder_paper, trend
from albert_lab.analysis.ladder_paper import PaperEffect
from albert_lab.analysis.looks import level_at, levels
from albert_lab.analysis.statistics import holm
from albert_lab.analysis.trend import (
    FEWEST_RUNGS,
    LEVEL,
    DecisionAccuracy,
    Direction,
    Effect,
    Interval,
    Trend,
    Validation,
)
from albert_lab.measures.catalog import labels, probes
from albert_lab.runs.reported import ReportedRun
from albert_lab.score import LINEAR_PROBE, Score
from albert_lab.studies.ladder_results import LadderFile, LadderResults

Labels = Mapping[str, str]

MLM = "mlm_accuracy"
SPENDING = "pocock"  # as in a study (studies/seed_plan.py)


@dataclass(frozen=True)
class Measure:
    """A quantity that is compared at each rung; higher is better.

    Likelihoods are minus the loss. They differ long before accuracies do.
    """

    key: str
    label: str
    unit: str


@dataclass(frozen=True)
class Contrast:
    """Two rows that differ in one axis; the effect is the first minus the second.

    varied: the axes in which rows of the ladder differ.
    """

    axis: str
    first: Labels
    second: Labels
    varied: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return f"{self.first[self.axis]} − {self.second[self.axis]}" + self.at

    @property
    def at(self) -> str:
        """The labels that both rows share, of axes in which other rows differ, in brackets; empty if there are none."""
        others = ", ".join(f"{axis}={self.first[axis]}" for axis in self.varied if axis != self.axis)
        return f" ({others})" if others else ""


@dataclass(frozen=True)
class ContrastTrend:
    """A contrast along the rungs, in one measure.

    Attributes:
        rungs: those at which both rows have runs, without early ones.
        trend: None with fewer than three rungs.
        p: of the slope, by Holm over the contrasts of the measure.
        alpha: the level of p for the seeds of its rung with the fewest; None before the first look.
        room: the largest difference that two scores at or above chance can have; None for a likelihood.
        prediction: at the paper's compute.
        paper: the paper's difference by its column, in the paper's units.
        early: the effects at rungs with fewer seeds than the first look, by rung; they are no part of the rest.
    """

    measure: Measure
    contrast: Contrast
    rungs: tuple[str, ...]
    effects: tuple[Effect, ...]
    trend: Trend | None = None
    p: float | None = None
    alpha: float | None = 1 - LEVEL
    room: float | None = None
    prediction: Interval | None = None
    validation: Validation | None = None
    paper: Mapping[str, float] = field(default_factory=dict)
    early: Mapping[str, Effect] = field(default_factory=dict)

    @property
    def direction(self) -> Direction | None:
        """The way in which the effect changes with compute, if that is shown."""
        return self.trend.direction(self.p, self.alpha) if self.trend and self.alpha is not None else None

    @property
    def leaves_the_scale(self) -> bool:
        """Whether the line predicts a larger difference than two scores can have."""
        return bool(self.prediction and self.room is not None and abs(self.prediction.value) > self.room)

    @property
    def is_informative(self) -> bool:
        """Whether the prediction says something: it has a sign, and two scores can differ by so much."""
        return bool(self.prediction and self.prediction.sign and not self.leaves_the_scale)


@dataclass(frozen=True)
class RowScores:
    """The scores of one row in a measure, by rung, over its seeds.

    floors: by name and rung, the floors of its scores. is_by_probe: whether a linear probe answers for a head that the
    row lacks.
    """

    measure: Measure
    row: Labels
    scores: Mapping[str, Sequence[float]]
    floors: Mapping[str, Mapping[str, float]]
    is_by_probe: bool


@dataclass(frozen=True)
class LadderAnalysis:
    """The trends of a ladder, and its decision accuracy by measure.

    Attributes:
        predicted_log_flops: the place of the predictions.
        trends: of each row against the first one of its axis that is scored by the same method, by measure.
        accuracies: over all contrasts of rows that differ in one axis.
        scores: of each row in each measure that has a trend.
        paper: the paper's effects for the contrasts that it has rows for, else those of its own rows on their axis.
    """

    results: LadderResults
    predicted_log_flops: float
    trends: tuple[ContrastTrend, ...]
    accuracies: Mapping[Measure, DecisionAccuracy]
    scores: tuple[RowScores, ...]
    paper: tuple[PaperEffect, ...] = ()

    @property
    def accuracy(self) -> DecisionAccuracy | None:
        """The decision accuracy over all measures."""
        return DecisionAccuracy.of_all(self.accuracies.values())

    def of(self, measure: Measure) -> list[ContrastTrend]:
        return [line for line in self.trends if line.measure == measure]

    @property
    def measures(self) -> list[Measure]:
        return list(dict.fromkeys(line.measure for line in self.trends))


@dataclass(frozen=True)
class _Run:
    rung: str
    row: Labels
    seed: int
    log_flops: float
    scores: Mapping[Measure, Score]


def analyse(results: LadderResults) -> LadderAnalysis:
    runs = list(_runs(results))
    rows = list({tuple(run.row.items()): run.row for run in runs}.values())
    measures = list(dict.fromkeys(measure for run in runs for measure in run.scores))
    place = math.log10(results.file.predicted_flops)
    trends: list[ContrastTrend] = []
    accuracies = {}
    for measure in measures:
        pairs = [pair for contrast in contrasts(rows) if (pair := _along(runs, results.rungs, contrast, measure))]
        pairs = [_without_early_rungs(pair, results.file.looks[0]) for pair in pairs]
        lines = list(_against_the_first(pairs))
        trends += _fitted(lines, place, results.file)
        if accuracy := trend.decision_accuracy([pair.effects for pair in pairs]):
            accuracies[measure] = accuracy
    compared = list(dict.fromkeys(line.measure for line in trends))
    scores = tuple(_row_scores(runs, results.rungs, row, measure) for measure in compared for row in rows)
    return LadderAnalysis(results, place, tuple(trends), accuracies, scores, _paper(results.file, trends))


def _row_scores(runs: Sequence[_Run], rungs: Sequence[str], row: Labels, measure: Measure) -> RowScores:
    own = [run for run in runs if run.row == row and measure in run.scores]
    scored = {rung: [run.scores[measure] for run in own if run.rung == rung] for rung in rungs}
    floors: dict[str, dict[str, float]] = {}
    for rung, scores in scored.items():
        for score in scores:  # runs of one rung share the held-out pairs and the text, and so the floors
            for name, value in score.floors.items():
                floors.setdefault(name, {})[rung] = value
    return RowScores(
        measure,
        row,
        {rung: [score.value for score in scores] for rung, scores in scored.items() if scores},
        floors,
        measure.key not in probes() and any(run.scores[measure].by == LINEAR_PROBE for run in own),
    )


def _against_the_first(pairs: Sequence[ContrastTrend]) -> Iterator[ContrastTrend]:
    """Of all pairs of rows those with the first row of their axis that any other is comparable with."""
    references: dict[str, str] = {}
    for pair in pairs:
        contrast = pair.contrast
        if contrast.second[contrast.axis] == references.setdefault(contrast.axis, contrast.second[contrast.axis]):
            yield pair


def _fitted(lines: Sequence[ContrastTrend], place: float, file: LadderFile) -> Iterator[ContrastTrend]:
    fits = [trend.fit(line.effects) for line in lines]
    p_values = iter(holm([fit.p for fit in fits if fit]))
    steps = levels(file.looks, SPENDING, 1 - LEVEL, max(1, len(lines)))
    for line, fit in zip(lines, fits, strict=True):
        seeds = min(effect.n for effect in line.effects)
        yield ContrastTrend(
            line.measure,
            line.contrast,
            line.rungs,
            line.effects,
            fit,
            next(p_values) if fit else None,
            level_at(file.looks, steps, seeds) if seeds >= file.looks[0] else None,
            line.room,
            fit.predict(place) if fit else None,
            trend.validate(line.effects),
            ladder_paper.differences(file.experiment, file.ladder, line.contrast.first, line.contrast.second),
            line.early,
        )


def _without_early_rungs(line: ContrastTrend, first_look: int) -> ContrastTrend:
    """Set rungs with fewer seeds than the first look apart, if those that have reached it make a trend."""
    reached = [effect.n >= first_look for effect in line.effects]
    if sum(reached) < FEWEST_RUNGS:
        return line
    judged, early = (
        {
            rung: effect
            for rung, effect, is_there in zip(line.rungs, line.effects, reached, strict=True)
            if is_there == of
        }
        for of in (True, False)
    )
    return replace(line, rungs=tuple(judged), effects=tuple(judged.values()), early=early)


def _paper(file: LadderFile, trends: Sequence[ContrastTrend]) -> tuple[PaperEffect, ...]:
    effects: dict[str, PaperEffect] = {}
    known = set()
    for line in trends:
        contrast = line.contrast
        if line.paper:
            first, second = contrast.first[contrast.axis], contrast.second[contrast.axis]
            effects.setdefault(contrast.words, PaperEffect(contrast.words, first, second, line.paper))
            known.add((contrast.axis, second))
    for contrast in (line.contrast for line in trends):
        if (contrast.axis, contrast.second[contrast.axis]) not in known:
            for own in ladder_paper.own_effects(file.experiment, file.ladder, contrast.axis, contrast.second):
                words = own.words + contrast.at
                effects.setdefault(words, replace(own, words=words, row=own.row + contrast.at))
    return tuple(effects.values())


def contrasts(rows: Sequence[Labels]) -> Iterator[Contrast]:
    """Every two rows that differ in one axis, the earlier row second."""
    varied = tuple(axis for axis in rows[0] if len(_values(rows, axis)) > 1)
    for second, first in combinations(rows, 2):
        differing = [axis for axis in first if first[axis] != second[axis]]
        if len(differing) == 1:
            yield Contrast(differing[0], first, second, varied)


def _along(runs: Sequence[_Run], rungs: Iterable[str], contrast: Contrast, measure: Measure) -> ContrastTrend | None:
    """The effects of a contrast at the rungs that have a seed in both rows, scored by the same method."""
    rung_names: list[str] = []
    differences, flops = [], []
    is_learnt, chance = False, 100.0
    for rung in rungs:
        first, second = (
            {run.seed: run for run in runs if run.rung == rung and run.row == row and measure in run.scores}
            for row in (contrast.first, contrast.second)
        )
        shared = sorted(first.keys() & second.keys())
        pairs = [(first[seed], second[seed]) for seed in shared]
        if not pairs or any(a.scores[measure].by != b.scores[measure].by for a, b in pairs):
            continue
        is_learnt |= any(_is_learnt(run.scores[measure]) for pair in pairs for run in pair)
        chance = min(chance, *(run.scores[measure].floor for pair in pairs for run in pair))
        differences.append({a.seed: _value(measure, a) - _value(measure, b) for a, b in pairs})
        flops.append(10 ** fmean(run.log_flops for pair in pairs for run in pair))
        rung_names.append(rung)
    if not rung_names or not (is_learnt or measure.key == MLM):
        return None
    order = sorted(range(len(rung_names)), key=flops.__getitem__)
    return ContrastTrend(
        measure,
        contrast,
        tuple(rung_names[place] for place in order),
        trend.effects(differences, flops),
        room=100 - chance if measure.unit == "points" else None,
    )


def _is_learnt(score: Score) -> bool:
    return score.low is None or score.low > score.floor


def _value(measure: Measure, run: _Run) -> float:
    score = run.scores[measure]
    if measure.unit == "points":
        return score.value
    assert score.loss is not None
    return -score.loss


def _runs(results: LadderResults) -> Iterator[_Run]:
    for point in results.file.points:
        if run := results.runs.get(point.run):
            flops = run.record.train_flops_per_token * run.record.training.tokens
            scores = dict(_scores(run, results.file.experiment.columns))
            yield _Run(point.rung, point.row, point.seed, math.log10(flops), scores)


def _scores(run: ReportedRun, columns: Sequence[str]) -> Iterator[tuple[Measure, Score]]:
    """The compared quantities of a run: of these columns MLM by likelihood, other scores in points; and tasks."""
    for key, score in run.record.scores.items():
        label = labels().get(key, key.replace("_", " "))
        if key not in columns:
            continue
        if key != MLM:
            yield Measure(key, label, "points"), score
        elif score.loss is not None:
            yield Measure(key, label, "nats per token"), score
    for column in run.columns:
        scores = [record.last.main for record in column.finetunings]
        losses = [score.loss for score in scores if score.loss is not None]
        if losses and len(losses) == len(scores):
            middle = sorted(scores, key=lambda score: score.value)[len(scores) // 2]
            yield (
                Measure(column.task, column.title, "nats per example"),
                middle.model_copy(update={"loss": fmean(losses)}),
            )


def _values(rows: Iterable[Labels], axis: str) -> list[str]:
    return list(dict.fromkeys(row[axis] for row in rows))
