"""The columns of a table as samples over seeds: their pooled spread, their floors, and averages of them."""

import math
from collections.abc import Sequence
from functools import cached_property
from statistics import fmean

from albert_lab.analysis.statistics import Estimate, PooledSpread, Sample
from albert_lab.measures.catalog import units
from albert_lab.runs.reported import AVERAGE, AVERAGED, ReportedRun
from albert_lab.score import Score, loss_name
from albert_lab.studies.claims import Labels
from albert_lab.studies.table import Row, filled_columns

# Computed here from the columns of the table of runs; likelihoods, so that higher is better, as with scores.
AVERAGE_LEARNT = "average_learnt"
AVERAGE_LIKELIHOOD = "average_log_likelihood"
MLM_LIKELIHOOD = "mlm_log_likelihood"
# After the name of a score: the score minus the floor of each segment by itself, in points.
OVER_SEGMENTS = "_over_segments"


class TableScores:
    """The rows of a table, with estimates of each column over seeds and examples.

    Scores are in percent. Columns besides those of the table of runs: `average_learnt`, the average without tasks that
    no row has learnt; `average_log_likelihood`, minus the mean loss of the same tasks; `mlm_log_likelihood`, minus the
    held-out loss in nats per token.
    """

    def __init__(self, table: Sequence[Row]) -> None:
        """Take the rows of a table; of rows with the same runs, only the first counts in the pooled spread."""
        self.table = list(table)
        self.columns = {name: column.task for name, column in filled_columns(table).items()}
        self._spreads: dict[tuple[str, bool], tuple[PooledSpread, dict[int, int]]] = {}

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.columns.get(column, column) for column in AVERAGED)

    def column(self, metric: str) -> str:
        """The column of a metric: a task that replaces an official one has a separate column."""
        return self.columns.get(metric, metric)

    def is_of_one_set(self, rows: Sequence[Row], column: str) -> bool:
        """Whether all runs of some rows were scored on the same held-out text, or dev examples, in a column."""
        members = self.learnt_tasks if column == AVERAGE_LIKELIHOOD else self._members(column)
        runs = [run for row in rows for run in row.runs]
        return all(len({_set(run, member) for run in runs} - {None}) < 2 for member in members)

    def rows(self, labels: Labels) -> list[Row]:
        return [row for row in self.table if labels.items() <= row.labels.items()]

    def sample(self, row: Row, column: str) -> Sample:
        """A column by pre-training seed; empty if no run has it."""
        values = {run.seed: self._value(run, column) for run in row.runs}
        return {seed: value for seed, value in values.items() if value is not None}

    def _value(self, run: ReportedRun, column: str) -> float | None:
        if column == AVERAGE_LEARNT:
            return _mean([run.numbers.get(task) for task in self.learnt_tasks])
        if column == AVERAGE_LIKELIHOOD:
            loss = _mean([run.numbers.get(loss_name(task)) for task in self.learnt_tasks])
            return None if loss is None else -loss
        if column == MLM_LIKELIHOOD:
            loss = run.numbers.get("mlm_loss")
            return None if loss is None else -loss
        if column.endswith(OVER_SEGMENTS):
            score = run.scores.get(column.removesuffix(OVER_SEGMENTS))
            return None if score is None or score.segments_floor is None else score.value - score.segments_floor
        return run.numbers.get(column)

    def estimate(self, weights: Sequence[tuple[float, Row]], column: str, *, is_log: bool = False) -> Estimate:
        """A weighted sum of row means over seeds and, if known, over examples.

        The level of a single row includes the noise of the answers even if only their number is known. A difference
        needs the score of each example, since rows answer the same examples; if these were not recorded, it only
        includes the spread over seeds.
        """
        spread, places = self._spread(column, is_log)
        of_places: dict[int, float] = {}
        for weight, row in weights:
            of_places[places[id(row)]] = of_places.get(places[id(row)], 0.0) + weight
        estimate = spread.estimate(of_places)
        if is_log:
            return estimate
        total, degrees = 0.0, math.inf
        members = self._members(column)
        for member in members:
            noise, df = self._noise(weights, member)
            total, degrees = total + noise / len(members) ** 2, min(degrees, df)
        return estimate.with_examples(total, degrees)

    def _noise(self, weights: Sequence[tuple[float, Row]], column: str) -> tuple[float, float]:
        answers = [score.n for _, row in weights for score in _scores(row, column)]
        if len(weights) > 1 or not answers or units().get(column) == "points":
            return 0.0, math.inf
        n, half = fmean(answers), 0.5 / fmean(answers)
        share = min(max(fmean(self.sample(weights[0][1], column).values()) / 100, half), 1 - half)
        return 1e4 * share * (1 - share) / n, max(n - 1, 1.0)

    def _spread(self, column: str, is_log: bool) -> tuple[PooledSpread, dict[int, int]]:
        if (column, is_log) not in self._spreads:
            samples, places, seen = [], {}, {}
            for row in self.table:
                if not (values := self.sample(row, column)):
                    continue
                runs = frozenset(run.name for run in row.runs)
                if runs not in seen:
                    seen[runs] = len(samples)
                    samples.append({seed: math.log(value) if is_log else value for seed, value in values.items()})
                places[id(row)] = seen[runs]
            step = 0.0 if is_log else max((self.resolution(row, column) for row in self.table), default=0.0)
            self._spreads[column, is_log] = PooledSpread(samples, step), places
        return self._spreads[column, is_log]

    def resolution(self, row: Row, column: str) -> float:
        """The step of one answer, in points; 0 if the metric is no count."""
        if answers := [score.n for score in _scores(row, column)]:
            return 100.0 / fmean(answers)
        members = self._members(column)
        if len(members) < 2:
            return 0.0
        return math.sqrt(sum(self.resolution(row, member) ** 2 for member in members)) / len(members)

    def _members(self, column: str) -> tuple[str, ...]:
        """The columns whose mean a column is: only itself, for most columns."""
        if column == AVERAGE_LEARNT:
            return self.learnt_tasks
        return self.tasks if column == AVERAGE else (column,)

    def floor(self, row: Row, column: str) -> float | None:
        """The score of constant answers, in percent (for an average, the mean over its tasks); None if unknown."""
        runs = [run for run in row.runs if self._value(run, column) is not None]
        floors = [_floor(run, column) for run in runs]
        of_members = [_mean([_floor(run, member) for member in self._members(column)]) for run in runs]
        return _mean([first if first is not None else second for first, second in zip(floors, of_members, strict=True)])

    def interval(self, row: Row, column: str) -> tuple[float, float] | None:
        """The 95 % interval of a row's mean, over seeds and answers, as verdicts have it; None if unknown.

        For a single seed, only over its answers.
        """
        if not self.sample(row, column):
            return None
        if interval := self.estimate([(1.0, row)], column).interval:
            return interval
        scores = _scores(row, column)
        low, high = _mean([score.low for score in scores]), _mean([score.high for score in scores])
        return None if low is None or high is None else (low, high)

    def is_at_floor(self, row: Row, column: str) -> bool:
        """Whether a row has learnt nothing: the interval of its mean reaches down to the score of constant answers."""
        floor = self.floor(row, column)
        interval = None if floor is None else self.interval(row, column)
        return floor is not None and interval is not None and interval[0] <= floor

    def at_floor(self, column: str) -> list[Row]:
        return [row for row in self.table if self.sample(row, column) and self.is_at_floor(row, column)]

    def shows_learning(self, column: str, level: float) -> bool:
        """Whether the whole interval of some row is above both a level and its floor."""
        for row in self.table:
            interval = self.interval(row, column)
            if interval and interval[0] > max(level, self.floor(row, column) or level):
                return True
        return False

    @cached_property
    def learnt_tasks(self) -> tuple[str, ...]:
        """The tasks of the average that some row has learnt, or whose floor is unknown."""
        return tuple(task for task in self.tasks if not self._is_learnt_by_none(task))

    @property
    def unlearnt_tasks(self) -> tuple[str, ...]:
        return tuple(task for task in self.tasks if task not in self.learnt_tasks)

    def _is_learnt_by_none(self, task: str) -> bool:
        having = [row for row in self.table if self.sample(row, task)]
        return bool(having) and all(self.is_at_floor(row, task) for row in having)

    def best(self, column: str) -> tuple[Row, float]:
        """The row with the highest mean, and that mean."""
        means = [(row, fmean(values.values())) for row in self.table if (values := self.sample(row, column))]
        return max(means, key=lambda item: item[1])


def _scores(row: Row, column: str) -> list[Score]:
    return [run.scores[column] for run in row.runs if column in run.scores]


def _floor(run: ReportedRun, column: str) -> float | None:
    return run.scores[column].floor if column in run.scores else None


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of values; None if one is unknown."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _set(run: ReportedRun, column: str) -> str | None:
    """The identity of what a column of a run was scored on; None if it is no score of the run."""
    for filled in run.columns:
        if column in (filled.task, loss_name(filled.task), *filled.parts):
            return " ".join(sorted({record.dev.fingerprint for record in filled.finetunings}))
    scores = run.record.scores
    is_held_out = column == MLM_LIKELIHOOD or column.removesuffix(OVER_SEGMENTS) in {*scores, *map(loss_name, scores)}
    return run.record.evaluation_set if is_held_out else None
