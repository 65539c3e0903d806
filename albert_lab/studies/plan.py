"""The plan of a study: how a command becomes runs. It is made once, does not change, and writes nothing.

An experiment has points (points.py), a point has a run, and a run may start from others (starts.py). A plan also has
what there is of each run, so it says what is to be trained; execute.py trains that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from albert_lab import paths
from albert_lab.config.compose import axes
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.messages import Say, to_stderr, with_progress
from albert_lab.runs import finetunings, states
from albert_lab.runs import run as runs
from albert_lab.runs.states import State
from albert_lab.studies import starts
from albert_lab.studies.experiment import ONE_MODEL, Experiment, key_of
from albert_lab.studies.points import Point, points

_ROWS_SHOWN = 3


@dataclass(frozen=True)
class PlannedPoint:
    """A point of an experiment, and what there was of its run when this was first asked.

    Several points may share a run.

    Attributes:
        tasks: the task of each downstream column of the table, by name or file.
        seeds: those of the fine-tunings; None: the seeds of each task.
        ancestors: the points that it starts from, oldest first; they have no tasks.
        with_random: whether its tasks are also fine-tuned from random weights of its shape.
    """

    point: Point
    tasks: Mapping[str, str] = field(default_factory=dict)
    seeds: finetunings.Seeds = None
    ancestors: tuple["PlannedPoint", ...] = ()
    with_random: bool = False

    @cached_property
    def pretraining(self) -> State:
        """The state of its pre-training."""
        return states.state(self.run.folder)

    @cached_property
    def has_weights(self) -> bool:
        """Whether others can start from it."""
        return states.has_weights(self.run.folder)

    @cached_property
    def missing(self) -> list[finetunings.Finetuning]:
        """The fine-tunings that are not there."""
        return finetunings.missing(self.run, self.tasks.values(), self.seeds, with_random=self.with_random)

    @cached_property
    def state(self) -> State:
        """The state of the run with its fine-tunings."""
        if self.pretraining != "done" or not self.missing:
            return self.pretraining
        return states.taken(self.run.folder) or "trained"

    def looked_at(self) -> "PlannedPoint":
        """The point, after a look at its run, if there was none before."""
        _ = self.state, self.has_weights
        return self

    def again(self) -> "PlannedPoint":
        """The point as its run is now."""
        return replace(self, ancestors=tuple(above.again() for above in self.ancestors))

    @property
    def run(self) -> runs.Run:
        return self.point.run

    @property
    def lineage(self) -> list[runs.Run]:
        """The runs that it starts from, oldest first, and its own."""
        return [point.run for point in self.point.lineage]

    @property
    def row(self) -> str:
        """Its row in tables; a single model has the name of its run, without the digest."""
        return self.point.label or self.run.name.rpartition("_seed")[0].replace("_", " ")

    @property
    def title(self) -> str:
        """Its row and its seed, as people call the run."""
        return f"{self.row} seed {self.point.config.seed}"

    @property
    def lacks_pretraining(self) -> bool:
        """Whether its weights are not final."""
        return self.pretraining not in states.PRETRAINED


def family(points: Sequence[PlannedPoint]) -> dict[str, PlannedPoint]:
    """The runs of some points and their ancestors, each once, by name, after those that it starts from."""
    rows = {item.run.name: item for item in points}
    return {other.run.name: rows.get(other.run.name, other) for item in points for other in (*item.ancestors, item)}


@dataclass(frozen=True)
class Plan:
    """The points of an experiment with their runs.

    Attributes:
        points: its points, in the order of the rows.
    """

    experiment: Experiment
    points: tuple[PlannedPoint, ...]

    def __post_init__(self) -> None:
        from albert_lab.data.fingerprint import fingerprints_taken_once

        with fingerprints_taken_once():
            for item in (*self.points, *self.family.values()):
                item.looked_at()

    @property
    def config(self) -> RunConfig:
        return self.points[0].point.config

    @property
    def name(self) -> str:
        """That of the experiment, or of the run of `albert-lab pretrain`."""
        return self.points[0].run.name if self.experiment.name == ONE_MODEL else self.experiment.name

    @property
    def report_folder(self) -> Path:
        return paths.reports() / report_place(self.config) / self.name

    @property
    def rows(self) -> list[PlannedPoint]:
        return list({item.run.name: item for item in self.points}.values())

    @cached_property
    def family(self) -> dict[str, PlannedPoint]:
        return family(self.points)

    def updated(self) -> "Plan":
        """The plan as its runs are now."""
        return replace(self, points=tuple(item.again() for item in self.points))

    def _to_finish(self, item: PlannedPoint) -> list[PlannedPoint]:
        """The runs that need pre-training before a point is finished: itself first, then what it starts from.

        A finished one is trained again only if its weights were freed and an unfinished run starts from it.
        """
        line: list[PlannedPoint] = []
        for run in (self.family[run.name] for run in reversed(item.lineage)):
            if not run.lacks_pretraining and (not line or run.has_weights or line[-1].has_weights):
                break
            line.append(run)
        return line

    @cached_property
    def failed(self) -> dict[str, PlannedPoint]:
        """The runs that failed before, by name; a failed run from which only finished ones start is none of them."""
        unfinished = {run.name for item in self.points if item.state != "done" for run in item.lineage}
        return {name: item for name, item in self.family.items() if item.state == "failed" and name in unfinished}

    @cached_property
    def orphaned(self) -> list[PlannedPoint]:
        """The runs that cannot be trained since one that they start from failed before, parents first."""
        lost, orphans = {*self.failed}, []
        for name, item in self.family.items():
            start = item.run.start_from
            if start and start.run in lost and name not in self.failed and item.lacks_pretraining:
                lost.add(name)
                orphans.append(item)
        return orphans

    @cached_property
    def to_pretrain(self) -> set[str]:
        """Names of the runs that need pre-training and can have it: none that it starts from failed before."""
        lines = ({run.run.name for run in self._to_finish(item)} for item in self.points)
        return set[str]().union(*(line for line in lines if not line & self.failed.keys()))

    @property
    def to_train(self) -> list[PlannedPoint]:
        """The runs that need pre-training or fine-tunings, each after those that it starts from."""
        return [
            item
            for name, item in self.family.items()
            if name in self.to_pretrain or (item.pretraining == "done" and item.tasks and item.state != "done")
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
        if isinstance(experiment.start_from, str):
            rows = _continued(rows, experiment, overrides)
        chosen = finetunings.choose_tasks(experiment.columns, say, tasks, experiment.own_tasks)
        known: dict[str, PlannedPoint] = {}  # runs that others start from
        labels: set[str] = set()
        planned = []
        for point in with_progress(rows, len(rows), "planned {} of {} runs", to_stderr):
            ancestors = [known.setdefault(above.run.name, PlannedPoint(above)) for above in point.lineage[:-1]]
            is_first = point.label not in labels  # of its row, whose other seeds have the same shape
            labels.add(point.label)
            planned.append(PlannedPoint(point, chosen, experiment.finetuning_seeds, tuple(ancestors), is_first))
        _refuse_equal_rows(rows)
        _say_different_sets(planned, say)
        for item in planned:
            check_kinds(item.point.config.inter_sentence)
        return Plan(experiment, tuple(planned))


def _continued(rows: Sequence[Point], experiment: Experiment, overrides: Sequence[str]) -> list[Point]:
    """The rows as continuations of an existing run, with its weights, its shape and its tokenizer."""
    parent = starts.find_parent(str(experiment.start_from))
    above = Point({"run": parent.name}, parent.config, existing=parent)
    continued = []
    for point in rows:
        choices = [experiment.grid.get(axis, {}).get(label, "") for axis, label in point.row.items()]
        keys = {
            *axes(overrides),
            *point.row,
            *(key_of(text) for choice in choices if isinstance(choice, tuple) for text in choice),
        }
        config = starts.adopt(point.config, parent, keys, {*map(key_of, experiment.fixed)})
        continued.append(replace(point, config=config, parent=above))
    return continued


def _refuse_equal_rows(rows: Sequence[Point]) -> None:
    """Values that are written differently can be equal, as 0 and 0.0, and machine settings make no other run."""
    labels: dict[object, str] = {}
    for point in rows:
        for axis, label in point.row.items():
            others = tuple(item for item in point.row.items() if item[0] != axis)
            other = labels.setdefault((axis, others, point.run.name), label) if point.is_plain(axis) else label
            if other != label:
                raise ConfigError(f"{axis}={other},{label}: these rows would be the same runs; give one of the values")


def _say_different_sets(planned: Sequence[PlannedPoint], say: Say) -> None:
    """Say which rows cannot be compared on held-out text, since they are scored on different sets."""
    rows: dict[str, str] = {}
    for item in planned:
        rows.setdefault(item.run.evaluation_set, item.point.label)
    if len(rows) > 1:
        shown = [*rows.values()][:_ROWS_SHOWN]
        say(
            "scores on held-out text are not compared between these rows, to which corpus, tokenizer, length or masking"
            f" give different held-out sets: {'; '.join(shown)}{'; …' * (len(rows) > len(shown))};"
            " one corpus, tokenizer, length and masking for all of them makes them comparable"
        )


def report_place(config: RunConfig) -> str:
    """Name of the folder for reports of this scale and corpus."""
    return f"{config.scale.name}-{config.corpus.name}"
