"""The plan of a study: how a command becomes runs. It is made once, does not change, and writes nothing.

An experiment has points (points.py), a point has a run, and a run may start from others (starts.py). A plan also has
what there is of each run, so it says what is to be trained; execute.py trains that.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from albert_lab import paths
from albert_lab.config.compose import axes, load
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.messages import Say, to_stderr, with_progress
from albert_lab.runs import columns, finetunings, states
from albert_lab.runs import run as runs
from albert_lab.runs.states import State
from albert_lab.studies import starts
from albert_lab.studies.experiment import INTRINSIC, Experiment
from albert_lab.studies.points import Point, points

_ROWS_SHOWN = 3
ONE_MODEL = "pretrain"


@dataclass(frozen=True)
class PlannedPoint:
    """A point of an experiment with its run, and what there was of the run when it was planned.

    Several points may share a run.

    Attributes:
        tasks: the task of each downstream column of the table, by name or file.
        seeds: those of the fine-tunings; None: the seeds of each task.
        ancestors: the points that it starts from, oldest first; they have no tasks.
        pretraining: the state of its pre-training.
        has_weights: whether others can start from it.
        missing: the fine-tunings that are not there.
        state: that of the run with its fine-tunings.
        with_random: whether its tasks are also fine-tuned from random weights of its shape.
    """

    point: Point
    run: runs.Run
    tasks: Mapping[str, str]
    seeds: finetunings.Seeds
    ancestors: tuple["PlannedPoint", ...]
    pretraining: State
    has_weights: bool
    missing: tuple[finetunings.Finetuning, ...]
    state: State
    with_random: bool = False

    @property
    def lineage(self) -> list[runs.Run]:
        return [*(item.run for item in self.ancestors), self.run]

    @property
    def row(self) -> str:
        """Its row in tables; a single model has the name of its run, without the digest."""
        return self.point.label or self.run.name.rpartition("_")[0]

    @property
    def title(self) -> str:
        """Its row and its seed, as people call the run."""
        return f"{self.point.label} seed {self.point.config.seed}" if self.point.label else self.row

    @property
    def lacks_pretraining(self) -> bool:
        """Whether its weights are not final."""
        return self.pretraining not in states.PRETRAINED


def look_up(
    point: Point,
    run: runs.Run,
    tasks: Mapping[str, str] | None = None,
    seeds: finetunings.Seeds = None,
    ancestors: Sequence[PlannedPoint] = (),
    *,
    with_random: bool = False,
) -> PlannedPoint:
    """A point as its run is now; reads the run's folder, its lock and its place in Slurm's queue."""
    tasks = tasks or {}
    pretraining = states.state(run.folder)
    missing = finetunings.missing(run, tasks.values(), seeds, with_random=with_random)
    state = states.with_finetunings(run, pretraining, missing)
    return PlannedPoint(
        point=point,
        run=run,
        tasks=tasks,
        seeds=seeds,
        ancestors=tuple(ancestors),
        pretraining=pretraining,
        has_weights=states.has_weights(run.folder),
        missing=tuple(missing),
        state=state,
        with_random=with_random,
    )


def look_again(item: PlannedPoint) -> PlannedPoint:
    return look_up(
        item.point,
        item.run,
        item.tasks,
        item.seeds,
        [look_again(ancestor) for ancestor in item.ancestors],
        with_random=item.with_random,
    )


def family(points: Sequence[PlannedPoint]) -> dict[str, PlannedPoint]:
    """The runs of some points and their ancestors, each once, by name, after those that it starts from."""
    rows = {item.run.name: item for item in points}
    return {other.run.name: rows.get(other.run.name, other) for item in points for other in (*item.ancestors, item)}


def lines_to_pretrain(points: Sequence[PlannedPoint]) -> Iterator[list[PlannedPoint]]:
    """For each point, the runs that need pre-training before it is finished: itself first, then what it starts from."""
    runs = family(points)
    for item in points:
        line: list[PlannedPoint] = []
        for ancestor in (runs[run.name] for run in reversed(item.lineage)):
            is_finished = ancestor.pretraining in states.PRETRAINED
            if is_finished and (not line or ancestor.has_weights or line[-1].has_weights):
                break
            line.append(ancestor)
        yield line


@dataclass(frozen=True)
class Plan:
    """The points of an experiment with their runs.

    Attributes:
        points: its points, in the order of the rows.
    """

    experiment: Experiment
    points: tuple[PlannedPoint, ...]

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
        from albert_lab.data.fingerprint import fingerprints_taken_once

        with fingerprints_taken_once():
            return replace(self, points=tuple(map(look_again, self.points)))

    @cached_property
    def failed(self) -> dict[str, PlannedPoint]:
        """The runs that failed before, by name; a failed run from which only finished ones start is none of them."""
        unfinished = {run.name for item in self.points if item.state not in states.FINISHED for run in item.lineage}
        return {name: item for name, item in self.family.items() if item.state == "failed" and name in unfinished}

    @cached_property
    def orphaned(self) -> list[PlannedPoint]:
        """The runs that cannot be trained since one that they start from failed before, parents first."""
        lost = {name for name, item in self.failed.items() if item.pretraining == "failed"}
        orphans = []
        for name, item in self.family.items():
            start = item.run.start_from
            if start and start.run in lost and name not in self.failed and item.lacks_pretraining:
                lost.add(name)
                orphans.append(item)
        return orphans

    @cached_property
    def to_pretrain(self) -> set[str]:
        """Names of the runs that need pre-training.

        A finished parent is trained again only if its weights were freed and an unfinished run starts from it. A parent
        that no unfinished run needs is left out, as is a run that starts from one that failed.
        """
        return {
            item.run.name
            for line in lines_to_pretrain(self.points)
            if not any(item.pretraining == "failed" and item.run.name in self.failed for item in line)
            for item in line
        }

    @property
    def to_train(self) -> list[PlannedPoint]:
        """The runs that need pre-training or fine-tunings, each after those that it starts from."""
        ended = (*states.FINISHED, "failed")
        return [
            item
            for name, item in self.family.items()
            if name in self.to_pretrain or (item.pretraining == "done" and item.tasks and item.state not in ended)
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
    from albert_lab.data.pair_kinds import check_kinds

    with fingerprints_taken_once():
        rows = points(experiment, overrides, to_stderr)
        if isinstance(experiment.start_from, str):
            rows = starts.continued(rows, experiment, overrides)
        chosen = columns.choose_tasks(experiment.columns, say, tasks, experiment.own_tasks)
        asked = with_progress(rows, len(rows), "planned {} of {} runs", to_stderr)
        lines: dict[int, list[tuple[Point, runs.Run]]] = {}
        ancestors: dict[str, PlannedPoint] = {}
        seen: set[str] = set()
        planned = tuple(_planned(starts.lineage(point, lines), ancestors, experiment, chosen, seen) for point in asked)
    _say_different_sets(planned, say)
    for item in planned:
        check_kinds(item.point.config.inter_sentence)
    return Plan(experiment, planned)


def _planned(
    line: Sequence[tuple[Point, runs.Run]],
    known: dict[str, PlannedPoint],
    experiment: Experiment,
    tasks: Mapping[str, str],
    rows: set[str],
) -> PlannedPoint:
    """The last point of a line; `known` are the ancestors that were looked up before, `rows` the labels of rows."""
    *above, (point, run) = line
    for ancestor in above:
        if ancestor[1].name not in known:
            known[ancestor[1].name] = look_up(*ancestor)
    ancestors = [known[ancestor.name] for _, ancestor in above]
    is_first = point.label not in rows  # of its row, whose other seeds have the same shape
    rows.add(point.label)
    return look_up(point, run, tasks, experiment.finetuning_seeds, ancestors, with_random=is_first)


def _say_different_sets(planned: Sequence[PlannedPoint], say: Say) -> None:
    """Say which rows cannot be compared on held-out text, since they are scored on different sets."""
    rows: dict[str, str] = {}
    for item in planned:
        rows.setdefault(item.run.evaluation_set, item.point.label)
    if len(rows) > 1:
        shown = [*rows.values()][:_ROWS_SHOWN]
        say(
            "scores on held-out text are not compared between these rows, to which corpus, tokenizer, length or masking"
            f" give different held-out sets: {'; '.join(shown)}{'; …' * (len(rows) > len(shown))}. Scores after"
            " fine-tuning on the same examples are"
        )


def report_place(config: RunConfig) -> str:
    """Name of the folder for reports of this scale and corpus."""
    return f"{config.scale.name}-{config.corpus.name}"


def one_model(overrides: Sequence[str]) -> tuple[Experiment, list[str]]:
    """The experiment of one run, scored only on held-out text, and the overrides of the run.

    The seed is that of conf/config.yaml unless given, not those of the scale.

    Raises:
        ConfigError: a key with several values.
    """
    given = axes(overrides)
    for key, values in given.items():
        if len(values) > 1:
            raise ConfigError(f"{key}={','.join(values)}: pretrain trains one model; `albert-lab sweep` trains several")
    content = {"name": ONE_MODEL, "title": "One model", "source": "own model", "grid": {}, "columns": INTRINSIC}
    return Experiment.model_validate(content), [*overrides, *([] if "seed" in given else [f"seed={load().seed}"])]
