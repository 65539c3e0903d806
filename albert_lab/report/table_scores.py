"""The columns of a table as samples over seeds: their pooled spread, their floors, and averages of them."""

import json
import math
from collections.abc import Sequence
from functools import cached_property
from statistics import fmean

import numpy as np
import pandas as pd

from albert_lab.report.examples import ExampleScores, example_variance
from albert_lab.report.statistics import Estimate, PooledSpread, Sample
from albert_lab.runs.finetunings import AVERAGE, AVERAGED
from albert_lab.studies.claim import Labels, name
from albert_lab.studies.table import Row, Run

# Computed here from the columns of the table of runs; likelihoods, so that higher is better, as with scores.
AVERAGE_LEARNT = "average_learnt"
AVERAGE_LIKELIHOOD = "average_log_likelihood"
MLM_LIKELIHOOD = "mlm_log_likelihood"


class TableScores:
    """The rows of a table, with estimates of each column over seeds and examples.

    Scores are in percent. Columns besides those of the table of runs: `average_learnt`, the average without tasks that
    no row has learnt; `average_log_likelihood`, minus the mean loss of the same tasks; `mlm_log_likelihood`, minus the
    held-out loss in nats per token.
    """

    def __init__(self, table: Sequence[Row], tunings: pd.DataFrame | None = None) -> None:
        """Take the rows of a table.

        Args:
            table: its rows. Of rows with the same runs, only the first counts in the pooled spread.
            tunings: one line per fine-tuning: run, column, the task that fills it, best in percent, and, if recorded,
                the scores of its dev examples as JSON, with dev, a fingerprint of these examples.
        """
        self.table = list(table)
        self.columns = filled(tunings)
        self._examples = _examples(tunings)
        self._spreads: dict[tuple[str, bool], tuple[PooledSpread, dict[int, int]]] = {}

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the average."""
        return tuple(self.columns.get(column, column) for column in AVERAGED)

    def column(self, metric: str) -> str:
        """The column of a metric: a task that replaces an official one has a separate column."""
        return self.columns.get(metric, metric)

    def rows(self, labels: Labels) -> list[Row]:
        """The rows with these labels."""
        return [row for row in self.table if labels.items() <= row.labels.items()]

    def sample(self, row: Row, column: str) -> Sample:
        """A column by pre-training seed, or by round if it was measured side by side; empty if no run has it."""
        if column in row.rounds:
            return dict(enumerate(row.rounds[column]))
        values = {run["seed"]: self._value(run, column) for run in row.runs}
        return {seed: value for seed, value in values.items() if value is not None}

    def _value(self, run: Run, column: str) -> float | None:
        if column == AVERAGE_LEARNT:
            return _mean([_number(run, task) for task in self.learnt_tasks])
        if column == AVERAGE_LIKELIHOOD:
            loss = _mean([_number(run, f"{task}_loss") for task in self.learnt_tasks])
            return None if loss is None else -loss
        if column == MLM_LIKELIHOOD:
            loss = _number(run, "mlm_loss")
            return None if loss is None else -loss
        return _number(run, column)

    def estimate(self, weights: Sequence[tuple[float, Row]], column: str, *, is_log: bool = False) -> Estimate:
        """A weighted sum of row means over seeds and, if known, over examples.

        The level of a single row includes the noise of the answers even if only their number is known. A difference
        needs the score of each example, since rows answer the same examples; if these were not recorded, it only
        includes the spread over seeds.

        Args:
            weights: with their rows, all of which have the column.
            column: the compared column.
            is_log: whether to use logarithms.
        """
        spread, places = self._spread(column, is_log)
        of_places: dict[int, float] = {}
        for weight, row in weights:
            of_places[places[id(row)]] = of_places.get(places[id(row)], 0.0) + weight
        found = spread.estimate(of_places)
        if is_log:
            return found
        total, degrees = 0.0, math.inf
        members = self._members(column)
        for member in members:
            noise, df = self._noise(weights, member)
            total, degrees = total + noise / len(members) ** 2, min(degrees, df)
        return found.with_examples(total, degrees)

    def _noise(self, weights: Sequence[tuple[float, Row]], column: str) -> tuple[float, float]:
        """The variance due to the choice of examples, in percent squared, with its degrees of freedom."""
        examples = [each for _, row in weights if (each := self._examples_of(row, column)) is not None]
        if len(examples) == len(weights):
            noise, df = example_variance(examples, [weight for weight, _ in weights])
            return 1e4 * noise, df
        answers = [run[f"{column}_n"] for _, row in weights for run in row.having(f"{column}_low")]
        if len(weights) > 1 or not answers:
            return 0.0, math.inf
        n, half = fmean(answers), 0.5 / fmean(answers)
        share = min(max(fmean(self.sample(weights[0][1], column).values()) / 100, half), 1 - half)
        return 1e4 * share * (1 - share) / n, max(n - 1, 1.0)

    def _examples_of(self, row: Row, task: str) -> ExampleScores | None:
        """The dev examples of a row, if all its fine-tuned runs recorded the same ones."""
        runs = row.having(task)
        recorded = [self._examples[run["run"], task] for run in runs if (run["run"], task) in self._examples]
        fingerprints = {fingerprint for fingerprint, _ in recorded}
        if len(recorded) < len(runs) or len(fingerprints) != 1:
            return None
        scores = np.stack([scores for _, scores in recorded])
        return ExampleScores(tuple(run["seed"] for run in runs), scores, fingerprints.pop())

    def _spread(self, column: str, is_log: bool) -> tuple[PooledSpread, dict[int, int]]:
        """The pooled spread of a column, and the index of each row in it."""
        if (column, is_log) not in self._spreads:
            samples, places, seen = [], {}, {}
            for row in self.table:
                if not (values := self.sample(row, column)):
                    continue
                runs = frozenset(run["run"] for run in row.runs)
                if runs not in seen:
                    seen[runs] = len(samples)
                    samples.append({seed: math.log(value) if is_log else value for seed, value in values.items()})
                places[id(row)] = seen[runs]
            step = 0.0 if is_log else max((self.resolution(row, column) for row in self.table), default=0.0)
            self._spreads[column, is_log] = PooledSpread(samples, step), places
        return self._spreads[column, is_log]

    def resolution(self, row: Row, column: str) -> float:
        """The step of one answer, in points; 0 if the metric is no count."""
        if answers := [run[f"{column}_n"] for run in row.runs if run.get(f"{column}_n", math.nan) > 0]:
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
        own = [_number(run, f"{column}_floor") for run in runs]
        of_members = [_mean([_number(run, f"{member}_floor") for member in self._members(column)]) for run in runs]
        return _mean([first if first is not None else second for first, second in zip(own, of_members, strict=True)])

    def lower_end(self, row: Row, column: str) -> float | None:
        """The lower end of the 95 % interval of a row's mean, over seeds and answers; None if unknown.

        For a single seed, only over its answers.
        """
        if not self.sample(row, column):
            return None
        found = self.estimate([(1.0, row)], column).interval
        return found[0] if found else _mean([_number(run, f"{column}_low") for run in row.having(column)])

    def is_at_floor(self, row: Row, column: str) -> bool:
        """Whether a row has learnt nothing: the interval of its mean reaches down to the score of constant answers."""
        floor = self.floor(row, column)
        low = None if floor is None else self.lower_end(row, column)
        return floor is not None and low is not None and low <= floor

    def at_floor(self, column: str) -> list[Row]:
        """The rows that have a column and have learnt nothing in it."""
        return [row for row in self.table if self.sample(row, column) and self.is_at_floor(row, column)]

    def shows_learning(self, column: str, level: float) -> bool:
        """Whether the whole interval of some row is above both a level and its floor."""
        for row in self.table:
            low = self.lower_end(row, column)
            if low is not None and low > max(level, self.floor(row, column) or level):
                return True
        return False

    @cached_property
    def learnt_tasks(self) -> tuple[str, ...]:
        """The tasks of the average that some row has learnt, or whose floor is unknown."""
        return tuple(task for task in self.tasks if not self._is_learnt_by_none(task))

    @property
    def unlearnt_tasks(self) -> tuple[str, ...]:
        """The tasks of the average that no row has learnt."""
        return tuple(task for task in self.tasks if task not in self.learnt_tasks)

    def _is_learnt_by_none(self, task: str) -> bool:
        having = [row for row in self.table if self.sample(row, task)]
        return bool(having) and all(self.is_at_floor(row, task) for row in having)

    def best(self, column: str) -> tuple[str, float]:
        """The row with the highest mean, in words, and that mean."""
        means = {name(row.labels): fmean(values.values()) for row in self.table if (values := self.sample(row, column))}
        return max(means.items(), key=lambda item: item[1])


def _number(run: Run, column: str) -> float | None:
    value = run.get(column)
    return None if value is None or math.isnan(value) else float(value)


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of values; None if one is unknown."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def filled(tunings: pd.DataFrame | None) -> dict[str, str]:
    """The task that fills each downstream column of a table."""
    if tunings is None or tunings.empty:
        return {}
    return dict(zip(tunings["column"], tunings["task"], strict=True))


def _examples(tunings: pd.DataFrame | None) -> dict[tuple[str, str], tuple[str, np.ndarray]]:
    """The dev examples by run and task: their fingerprint, and the mean of each over fine-tuning seeds in [0, 1]."""
    found: dict[tuple[str, str], list[tuple[str, np.ndarray]]] = {}
    if tunings is None or "example_scores" not in tunings:
        return {}
    for line in tunings.to_dict("records"):
        scores = json.loads(line["example_scores"]) if isinstance(line["example_scores"], str) else None
        if scores:
            found.setdefault((line["run"], line["task"]), []).append(
                (str(line["dev"]), np.asarray(scores, dtype=float))
            )
    return {
        key: (of_seeds[0][0], np.mean([scores for _, scores in of_seeds], axis=0))
        for key, of_seeds in found.items()
        if len({fingerprint for fingerprint, _ in of_seeds}) == 1
    }
