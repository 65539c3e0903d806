"""The plan of a study: how a command becomes runs. It is made once, does not change, and writes nothing.

An experiment has points, its grid after the overrides of a command; a point has a run, which may start from others
(starts.py). A plan also has what there is of each run, so it says what is to be trained; execute.py trains that.
"""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from albert_lab import paths
from albert_lab.config.compose import MAX_POINTS, axes, expand, load
from albert_lab.config.schema import Keep, RunConfig, ScaleConfig
from albert_lab.errors import ConfigError
from albert_lab.messages import Say, to_stderr
from albert_lab.runs import finetunings, states
from albert_lab.runs import run as runs
from albert_lab.runs.states import State
from albert_lab.studies.claims import number_in
from albert_lab.studies.experiment import ONE_MODEL, Experiment, set_by
from albert_lab.studies.starts import adopt, check_start


@dataclass
class Point:
    """One run of an experiment, and what there was of it when this was first asked; several points may share a run.

    labels are its row, by axis; of its parent it keeps `keep`. tasks has the task of each downstream column of the
    table, by name or file, none of a point that is no row; seeds are those of the fine-tunings, None: those of each
    task; with_random says whether these also start from random weights of its shape.
    """

    labels: dict[str, str]
    config: RunConfig
    parent: "Point | None" = None
    keep: Keep = "weights"
    tasks: Mapping[str, str] = field(default_factory=dict)
    seeds: finetunings.Seeds = None
    with_random: bool = False

    @cached_property
    def run(self) -> runs.Run:
        """Its run; reads the text to name it.

        Raises:
            ConfigError: it cannot start from its parent.
            MissingDataError: text is missing.
        """
        if self.parent is None:
            return runs.plan(self.config)
        above = self.parent.run
        run = runs.plan(self.config, runs.StartFrom(run=above.name, keep=self.keep))
        try:
            check_start(run, above, self.keep)
        except ConfigError as error:
            raise ConfigError(f"{self.label or 'the run'} cannot start from {self.parent.label}: {error}") from error
        return run

    @cached_property
    def pretraining(self) -> State:
        """The state of its pre-training."""
        return states.state(self.run.folder)

    @cached_property
    def missing(self) -> list[finetunings.Finetuning]:
        """The fine-tunings that are not there."""
        return finetunings.missing(self.run, self.tasks.values(), self.seeds, with_random=self.with_random)

    @cached_property
    def state(self) -> State:
        """The state of the run with its fine-tunings."""
        if self.pretraining != "done" or not self.missing:
            return self.pretraining
        return "running" if runs.is_locked(self.run.folder) else "trained"

    @property
    def lacks_pretraining(self) -> bool:
        """Whether its weights are not final."""
        return self.pretraining not in states.PRETRAINED

    def again(self) -> "Point":
        """The point as its run is now."""
        point = replace(self, parent=self.parent and self.parent.again())
        point.run = self.run
        return point

    @property
    def lineage(self) -> list["Point"]:
        """The points that it starts from, oldest first, and itself."""
        return [*(self.parent.lineage if self.parent else ()), self]

    @property
    def values(self) -> dict[str, str]:
        """The value of each axis in the configuration; its label if the axis is no key but sets several."""
        found = {axis: self.config.value(axis) for axis in self.labels}
        return {axis: self.labels[axis] if value is None else value for axis, value in found.items()}

    @property
    def label(self) -> str:
        """The row in one line; a number that replaces one of the paper is followed by the paper's number."""
        return " ".join(f"{axis}={_shown(value, self.labels[axis])}" for axis, value in self.values.items())

    @property
    def row(self) -> str:
        """Its row in tables; a single model has the name of its run, without the digest."""
        return self.label or self.run.name.rpartition("_seed")[0].replace("_", " ")

    @property
    def title(self) -> str:
        """Its row and its seed, as people call the run."""
        return f"{self.row} seed {self.config.seed}"


def _shown(value: str, label: str) -> str:
    numbers = number_in(value), number_in(label)
    return label if None in numbers or numbers[0] == numbers[1] else f"{value} (paper: {label})"


def points(experiment: Experiment, overrides: Sequence[str] = ()) -> list[Point]:
    """Every run of an experiment, in the order of its rows; seeds vary fastest.

    Overrides win over the experiment: a swept key replaces or adds an axis, a single value fixes one. A value that is
    given for an axis chooses the row of this label; if there is none, it is used as it is.
    Seeds come from the experiment or else from the scale, unless given. With start_from=RUN all rows start from that
    run, at its scale unless one is given.

    Raises:
        ConfigError: an invalid configuration; names the point.
    """
    grid = _Grid(experiment, axes(overrides))
    number = math.prod(len(labels) for labels in (*grid.rows.values(), grid.seeds))
    if number > MAX_POINTS:
        raise ConfigError(f"{number:,} runs, and {MAX_POINTS:,} is the limit of a sweep: split it into several")
    return [grid.point(row, seed) for row in expand(grid.rows) for seed in grid.seeds]


class _Grid:
    """The grid of an experiment after the overrides of a command: labels by axis, and seeds."""

    def __init__(self, experiment: Experiment, overridden: dict[str, list[str]]) -> None:
        self._own_fixed = dict(text.split("=", 1) for text in experiment.fixed)
        fixed = self._own_fixed | {key: values[0] for key, values in overridden.items() if len(values) == 1}
        self._links, self._start = experiment.links, None
        if isinstance(start := fixed.pop("start_from", experiment.start_from), str):
            run = states.find_run(start.strip("'\""))
            self._links, self._start = (), Point({"run": run.name}, run.config)
            self._start.run = run
            fixed = {"scale": run.config.scale.name} | fixed
        self._overridden = overridden.keys() - {"start_from"}
        self._made: dict[tuple[tuple[str, str], ...], Point] = {}
        self._fixed = {key: value for key, value in fixed.items() if key not in experiment.grid}
        base = load([f"{key}={value}" for key, value in self._fixed.items() if re.match(r"scale\b", key)])
        self._scale = base.scale
        self._choices = {axis: experiment.grid[axis] | experiment.values_beyond(axis) for axis in experiment.axes}
        self.rows: dict[str, list[str]] = {}
        for axis, known in self._choices.items():
            beyond = experiment.beyond_paper.get(axis)
            self.rows[axis] = [*(known if beyond and self._scale.name in beyond.scales else experiment.grid[axis])]
            if axis in overridden:
                self.rows[axis] = [_label(value, known) for value in overridden[axis]]
                if base.value(axis) is None and (other := [of for of in self.rows[axis] if of not in known]):
                    raise ConfigError(f"{axis}={other[0]} is no row of the table (it has: {', '.join(known)})")
        swept = {key: values for key, values in overridden.items() if len(values) > 1 and key != "seed"}
        self.rows |= {key: values for key, values in swept.items() if key not in self.rows}
        own = [of if isinstance(of, str) else name for name, of in experiment.grid.get("seed", {}).items()]
        own = own or ([fixed["seed"]] if "seed" in fixed else [str(seed) for seed in self._scale.seeds])
        self.seeds = overridden.get("seed") or own
        for axis, labels in self.rows.items():
            keys = {key for label in labels for key in self._set_by(axis, label)}
            if of_all := [key for key in keys if key.split(".")[0] in ("scale", "machine", "seed")]:
                raise ConfigError(f"{of_all[0]}: rows cannot differ in it: give one value for all, or a study for each")
            for key in sorted((keys - {axis} - (self._own_fixed.keys() - swept.keys())) & self._overridden):
                choose = f"choose rows by {axis}={','.join(self._choices[axis])}"
                raise ConfigError(f"{key}={','.join(overridden[key])}: rows of the table set this key; {choose}")

    def _set_by(self, axis: str, label: str) -> dict[str, str]:
        """The values that a label sets, by key."""
        return set_by(axis, self._choices.get(axis, {}).get(label, label))

    def point(self, labels: dict[str, str], seed: str, below: Sequence[dict[str, str]] = ()) -> Point:
        """The point of labels, which may have keys that are no axes; below are those that start from it."""
        key, row = (*labels.items(), ("seed", seed)), " ".join(f"{axis}={label}" for axis, label in labels.items())
        if key in self._made:
            return self._made[key]
        if labels in below:
            raise ConfigError(f"start_from has a cycle: {row} starts from itself")
        try:
            config = self._config(labels, seed)
        except ConfigError as error:
            raise (ConfigError(f"{row}: {error}") if row and row not in str(error) else error) from error
        # A row with a key that is no axis is a trunk, which has no parent.
        links = [link for link in self._links if link.row.items() <= labels.items() and {*labels} <= {*self.rows}]
        for wanted in (link.row for link in self._links if not links):
            new = [axis for axis in wanted if labels[axis] not in self._choices[axis]]
            rest = [axis for axis in wanted if axis not in new]
            if new and rest and all(labels[axis] == wanted[axis] for axis in rest):
                known = f"one of {', '.join(self._choices[new[0]])}, or another {rest[0]}"
                raise ConfigError(f"{row}: no run is named that it starts from: give {known}")
        parent = self.point(labels | links[0].parent, seed, (*below, labels)) if links else self._start
        self._made[key] = point = Point(labels, config, parent, links[0].keep if links else "weights")
        return point

    def _config(self, labels: Mapping[str, str], seed: str) -> RunConfig:
        chosen = {key: value for item in labels.items() for key, value in self._set_by(*item).items()}
        values = self._fixed | chosen | {"seed": seed}
        config = load([f"{key}={_in_role(value, self._scale)}" for key, value in values.items()])
        return adopt(config, self._start.run, {*self._overridden, *chosen}, self._own_fixed) if self._start else config


def _label(value: str, known: Iterable[str]) -> str:
    """The label that a given value is, or else the value."""
    plain = value.strip("'\"").replace("\\ ", " ").casefold()  # Hydra's grammar writes True, and keeps quotes or "\ "
    return next((label for label in known if label.casefold() == plain), value)


def _in_role(value: str, scale: ScaleConfig) -> str:
    """An override's value, with each value of the paper in it replaced by that of the scale."""

    def value_of_scale(match: re.Match[str]) -> str:
        key, paper = match.groups()
        if paper not in (roles := scale.roles.get(key, {})):
            raise ConfigError(f"scale={scale.name} has no value for the paper's {key}={paper} (it has: {[*roles]})")
        return str(roles[paper])

    return re.sub(r"\$\{scale\.roles\.(\w+)\.([\w-]+)\}", value_of_scale, value)


@dataclass(frozen=True)
class Plan:
    """The points of an experiment with their runs, in the order of the rows."""

    experiment: Experiment
    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        for point in (*self.points, *self.family.values()):  # one look at all runs, before any of them changes
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
        """Its runs and those that these start from, each once, by name, after those that it starts from."""
        rows = {point.run.name: point for point in self.points}
        return {item.run.name: rows.get(item.run.name, item) for point in self.points for item in point.lineage}

    def updated(self) -> "Plan":
        """The plan as its runs are now."""
        return replace(self, points=tuple(point.again() for point in self.points))

    @cached_property
    def to_train(self) -> list[Point]:
        """The runs that need training: rows, and what these start from, up to a run that is trained; parents first."""
        lines = (itertools.takewhile(lambda run: run.lacks_pretraining, point.lineage[::-1]) for point in self.points)
        needed = {run.run.name for line in lines for run in line}
        needed |= {point.run.name for point in self.points if point.pretraining == "done" and point.state != "done"}
        return [point for name, point in self.family.items() if name in needed]


def plan_study(
    experiment: Experiment, overrides: Sequence[str], tasks: Sequence[str] | None = None, say: Say = to_stderr
) -> Plan:
    """The plan of an experiment.

    Args:
        overrides: `key=value` texts that win over it.
        tasks: names of the downstream tasks; None: those of the experiment's columns that have their data.
        say: takes what a user must know of the plan.

    Raises:
        ConfigError: a configuration that does not fit.
        MissingDataError: text, or the data of a task given by its name, is missing.
    """
    from albert_lab.data.pairs import check_kinds

    planned = points(experiment, overrides)
    chosen = finetunings.choose_tasks(experiment.columns, say, tasks)
    for point in planned:
        check_kinds(point.config.inter_sentence)
        point.tasks, point.seeds = chosen, experiment.finetuning_seeds
        point.with_random = point.config.seed == planned[0].config.seed  # the other seeds have the same shape
    return Plan(experiment, tuple(planned))


def plan_all(
    experiments: Sequence[Experiment], overrides: Sequence[str], tasks: Sequence[str] | None = None
) -> list[Plan]:
    """The plans of several experiments, by plan_study(); a table of tasks alone is left out if none has its data."""
    columns = dict.fromkeys(column for experiment in experiments for column in experiment.columns)
    known = finetunings.choose_tasks(columns, to_stderr, tasks)  # one line for all that lack their data
    plans = []
    for experiment in experiments:
        if tasks is None and experiment.ensemble and not known.keys() & {*experiment.columns}:
            to_stderr(f"{experiment.name}: left out, for none of its tasks has its files")
        else:
            plans.append(plan_study(experiment, overrides, tasks, lambda _: None))
    return plans
