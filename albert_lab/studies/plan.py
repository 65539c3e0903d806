"""The plan of a study: how a command becomes runs. It is made once, does not change, and writes nothing.

An experiment has points (points.py), a point has a run, and a run may start from others (starts.py). A plan also has
what there is of each run, so it says what is to be trained; execute.py trains that.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from albert_lab import paths
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import Say, to_stderr
from albert_lab.runs import finetunings
from albert_lab.studies.experiment import ONE_MODEL, Experiment
from albert_lab.studies.points import Point, points


def family(points: Sequence[Point]) -> dict[str, Point]:
    """The runs of some points and their ancestors, each once, by name, after those that it starts from."""
    rows = {point.run.name: point for point in points}
    return {other.run.name: rows.get(other.run.name, other) for point in points for other in point.lineage}


@dataclass(frozen=True)
class Plan:
    """The points of an experiment with their runs, in the order of the rows."""

    experiment: Experiment
    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        from albert_lab.data.fingerprint import fingerprints_taken_once

        with fingerprints_taken_once():  # one look at all runs, before any of them changes
            for point in (*self.points, *self.family.values()):
                _ = point.state

    @property
    def config(self) -> RunConfig:
        return self.points[0].config

    @property
    def name(self) -> str:
        """That of the experiment, or of the run of `albert-lab pretrain`."""
        return self.points[0].run.name if self.experiment.name == ONE_MODEL else self.experiment.name

    @property
    def report_folder(self) -> Path:
        return paths.reports() / f"{self.config.scale.name}-{self.config.corpus.name}" / self.name

    @cached_property
    def family(self) -> dict[str, Point]:
        return family(self.points)

    def updated(self) -> "Plan":
        """The plan as its runs are now."""
        return replace(self, points=tuple(point.again() for point in self.points))

    def _to_finish(self, point: Point) -> list[str]:
        """The runs that need pre-training before a point is finished: itself first, then what it starts from."""
        line = (self.family[above.run.name] for above in reversed(point.lineage))
        return [run.run.name for run in itertools.takewhile(lambda run: run.lacks_pretraining, line)]

    @cached_property
    def failed(self) -> dict[str, Point]:
        """The runs that failed before, by name; a failed run from which only finished ones start is none of them."""
        unfinished = {above.run.name for point in self.points if point.state != "done" for above in point.lineage}
        return {name: point for name, point in self.family.items() if point.state == "failed" and name in unfinished}

    @cached_property
    def to_pretrain(self) -> set[str]:
        """Names of the runs that need pre-training and can have it: none that it starts from failed before."""
        lines = map(self._to_finish, self.points)
        return {name for line in lines if not self.failed.keys() & {*line} for name in line}

    @cached_property
    def to_train(self) -> list[Point]:
        """The runs that need pre-training or fine-tunings, each after those that it starts from."""
        return [
            point
            for name, point in self.family.items()
            if name in self.to_pretrain or (point.pretraining == "done" and point.tasks and point.state != "done")
        ]


def plan_study(
    experiment: Experiment, overrides: Sequence[str], tasks: Sequence[str] | None = None, say: Say = to_stderr
) -> Plan:
    """The plan of an experiment.

    Args:
        experiment: the experiment.
        overrides: `key=value` texts that win over it.
        tasks: names of the downstream tasks; None: those of the experiment's columns that have their data.
        say: takes what a user must know of the plan.

    Raises:
        ConfigError: a configuration that does not fit.
        MissingDataError: text, or the data of a task given by its name, is missing.
    """
    from albert_lab.data.fingerprint import fingerprints_taken_once
    from albert_lab.data.pairs import check_kinds

    with fingerprints_taken_once():
        rows = points(experiment, overrides)
        chosen = finetunings.choose_tasks(experiment.columns, say, tasks, experiment.own_tasks)
        planned, seen = [], set[str]()
        for point in rows:
            check_kinds(point.config.inter_sentence)
            is_first = point.label not in seen  # of its row, whose other seeds have the same shape
            seen.add(point.label)
            tuned = {"tasks": chosen, "seeds": experiment.finetuning_seeds, "with_random": is_first}
            planned.append(replace(point, known=point.run, **tuned))
        return Plan(experiment, tuple(planned))


def plan_all(
    experiments: Sequence[Experiment], overrides: Sequence[str], tasks: Sequence[str] | None = None
) -> list[Plan]:
    """The plans of several experiments, such as those of the paper; see plan_study().

    A table of tasks alone is left out, in one line, if none of them has its data.
    """
    plans, left_out, said = [], [], set[str]()

    def say_once(line: str) -> None:
        if line not in said:
            to_stderr(line)
        said.add(line)

    for experiment in experiments:
        if tasks is None and experiment.ensemble and not finetunings.choose_tasks(experiment.columns, lambda _: None):
            left_out.append(experiment.name)
            continue
        try:
            plans.append(plan_study(experiment, overrides, tasks, say_once))
        except (ConfigError, MissingDataError) as error:
            kind = ConfigError if isinstance(error, ConfigError) else MissingDataError
            raise kind(f"{experiment.name}: {error}") from error
    if left_out:
        to_stderr(f"no files of their tasks, left out: {', '.join(left_out)}")
    return plans
