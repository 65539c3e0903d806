"""The plan of a study: how a command becomes runs. It is made once, does not change, and writes
nothing.

An experiment has variants, its grid after the overrides of a command (grid.py); a point is a
variant with its run and what there is of it, so a plan says what is to be trained; execute.py
trains that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from albert_lab import paths
from albert_lab.config.compose import Settings
from albert_lab.config.schema import RunConfig, digest
from albert_lab.errors import ConfigError
from albert_lab.messages import Say, to_stderr
from albert_lab.runs import finetunings, results, states
from albert_lab.runs import run as runs
from albert_lab.runs.finetunings import Finetuning, Seeds
from albert_lab.runs.states import State
from albert_lab.studies.experiment import ONE_MODEL, Experiment
from albert_lab.studies.grid import Variant, fixed_settings, variants
from albert_lab.studies.starts import check_start


@dataclass(frozen=True, kw_only=True)
class Point(Variant):
    """A variant with its run, and what there was of that when look() last looked; several points
    may share a run.

    tasks has the task of each downstream column of the table, by name or file, none of a point that
    is no row; seeds are those of the fine-tunings, None: those of each task; with_random says
    whether these also start from random weights of its shape.

    pretraining is the state of its pre-training, unscored if another run has its weights; missing
    are the fine-tunings that are not there, and state is that of both.
    """

    parent: "Point | None" = None
    run: runs.Run
    tasks: Mapping[str, str] = field(default_factory=dict)
    seeds: Seeds = None
    with_random: bool = False
    pretraining: State = "missing"
    missing: tuple[Finetuning, ...] = ()
    state: State = "missing"

    @property
    def lacks_pretraining(self) -> bool:
        """Whether its weights are not final."""
        return self.pretraining not in states.PRETRAINED

    @property
    def finetunings(self) -> list[Finetuning]:
        """All that its row needs, whether they are there or not."""
        return finetunings.wanted(
            self.run, self.tasks.values(), self.seeds, with_random=self.with_random
        )

    @property
    def lineage(self) -> list["Point"]:
        """The points that it starts from, oldest first, and itself."""
        return [*(self.parent.lineage if self.parent else ()), self]

    @property
    def row(self) -> str:
        """Its row in tables; a single model has the name of its run, without the digest."""
        return self.label or self.run.name.rpartition("_seed")[0].replace("_", " ")

    @property
    def title(self) -> str:
        """Its row and its seed, as people call the run."""
        return f"{self.row} seed {self.config.seed}"


def look(point: Point) -> Point:
    """A point and those that it starts from, with what is on disk of them now."""
    pretraining = states.state(point.run.folder)
    if pretraining in ("missing", "stopped") and runs.same_training(point.run):
        pretraining = "unscored"
    missing = finetunings.missing(point.finetunings)
    state = pretraining
    if pretraining == "done" and (missing or results.lacks_scores(point.run.folder)):
        state = "running" if runs.is_locked(point.run.folder) else "trained"
    return replace(
        point,
        parent=point.parent and look(point.parent),
        pretraining=pretraining,
        missing=tuple(missing),
        state=state,
    )


def _named(variant: Variant) -> Point:
    """The point of a variant, without tasks; reads the text to name its run.

    Raises:
        ConfigError: it cannot start from its parent.
        MissingDataError: text is missing.
    """
    parent = None
    if isinstance(variant.parent, Variant):
        parent = _named(variant.parent)
    elif variant.parent:
        elsewhere = variant.parent
        parent = Point(labels={"run": elsewhere.name}, config=elsewhere.config, run=elsewhere)
    start = parent and runs.StartFrom(run=parent.run.name, keep=variant.keep)
    run = runs.plan(variant.config, start)
    if parent:
        try:
            check_start(run, parent.run, variant.keep)
        except ConfigError as error:
            row = variant.label or "the run"
            raise ConfigError(f"{row} cannot start from {parent.label}: {error}") from error
    return Point(
        labels=variant.labels, config=variant.config, parent=parent, keep=variant.keep, run=run
    )


@dataclass(frozen=True)
class Plan:
    """The points of an experiment with their runs, in the order of the rows.

    name is that of its report; question is the digest of what makes two commands one study.
    """

    experiment: Experiment
    points: tuple[Point, ...]
    name: str
    question: str

    @property
    def config(self) -> RunConfig:
        return self.points[0].config

    @property
    def report_folder(self) -> Path:
        return paths.reports() / f"{self.config.scale.name}-{self.config.corpus.name}" / self.name

    @cached_property
    def family(self) -> dict[str, Point]:
        """Its runs and those that these start from, each once, by name, after those that it starts
        from.
        """
        rows = {point.run.name: point for point in self.points}
        return {
            item.run.name: rows.get(item.run.name, item)
            for point in self.points
            for item in point.lineage
        }

    def updated(self) -> "Plan":
        """The plan as its runs are now."""
        return replace(self, points=tuple(map(look, self.points)))

    @cached_property
    def to_train(self) -> list[Point]:
        """The runs that need training: rows, and what these start from, up to a run that is
        trained; parents first.
        """
        needed = set[str]()
        for point in self.points:
            if point.pretraining == "done" and point.state != "done":
                needed.add(point.run.name)
            for item in reversed(point.lineage):
                if not item.lacks_pretraining:
                    break
                needed.add(item.run.name)
        return [point for name, point in self.family.items() if name in needed]


def plan_study(
    experiment: Experiment,
    overrides: Sequence[str],
    tasks: Sequence[str] | None = None,
    say: Say = to_stderr,
    file: Path | None = None,
) -> Plan:
    """The plan of an experiment, whose report has the name of the experiment, or of the run of
    `albert-lab pretrain`.

    Args:
        overrides: `key=value` texts that win over it.
        tasks: names of the downstream tasks; None: those of the experiment's columns that have
            their data.
        say: takes what a user must know of the plan.
        file: the user's file of the experiment; None: it comes with the package, or is a sweep.

    Raises:
        ConfigError: a configuration that does not fit.
        MissingDataError: text, or the data of a task given by its name, is missing.
    """
    from albert_lab.data.pairs import check_kinds

    planned = variants(experiment, overrides)
    fixed = fixed_settings(experiment, overrides)
    if "start_from" in fixed:  # the report says of which encoder its rows are
        experiment = experiment.model_copy(update={"start_from": str(fixed["start_from"])})
    chosen = finetunings.choose_tasks(experiment.columns, say, tasks)
    points = []
    for variant in planned:
        check_kinds(variant.config.inter_sentence)
        # Without a step, runs of all seeds have the same weights: then a row's seeds are those of
        # its fine-tunings.
        is_trained = variant.config.budget.value > 0
        # The other seeds have the same shape. Whether a task reads what a trained encoder knows,
        # its first row shows.
        is_first = variant is planned[0]
        is_of_first_seed = variant.config.seed == planned[0].config.seed
        # Nothing is learnt at smoke, where a table takes seconds: no floor of random weights, but
        # of tasks by name.
        has_floor = tasks is not None or variant.config.scale.name != "smoke"
        point = replace(
            _named(variant),
            tasks=chosen,
            seeds=experiment.finetuning_seeds if is_trained else (variant.config.seed,),
            with_random=has_floor
            and (is_first if isinstance(experiment.start_from, str) else is_of_first_seed),
        )
        points.append(look(point))
    name = points[0].run.name if experiment.name == ONE_MODEL else experiment.name
    return Plan(experiment, tuple(points), name, _question(points, fixed, file))


def _question(points: Sequence[Point], fixed: Settings, file: Path | None) -> str:
    """The digest of a study's file, axes, fixed settings and text: more seeds or rows, or other
    claims, change none.

    A text is known by its fingerprint, not by its path; the machine decides nothing.
    """
    elsewhere = ("seed", "machine", "corpus.path", "added_corpus.path", "tokenizer.model_file")
    settings = {
        key: value
        for key, value in fixed.items()
        if not {key, key.partition(".")[0]} & {*elsewhere}
    }
    texts = {point.run.fingerprints.get("corpus") for point in points}
    text = texts.pop() if len(texts) == 1 else ""
    return digest([str(file and file.resolve()), [*points[0].labels], settings, text])


def plan_all(
    experiments: Sequence[Experiment], overrides: Sequence[str], tasks: Sequence[str] | None = None
) -> list[Plan]:
    """The plans of several experiments, by plan_study(); a table of tasks alone is left out if none
    has its data.
    """
    columns = dict.fromkeys(column for experiment in experiments for column in experiment.columns)
    # one line for all that lack their data
    known = finetunings.choose_tasks(columns, to_stderr, tasks)
    plans = []
    for experiment in experiments:
        has_task = bool(known.keys() & {*experiment.columns})
        # A table of tasks alone is one that has seeds of fine-tuning (glue, squad-race).
        if tasks is None and experiment.finetuning_seeds and not has_task:
            to_stderr(f"{experiment.name}: left out, for none of its tasks has its files")
        else:
            plans.append(plan_study(experiment, overrides, tasks, lambda _: None))
    return plans
