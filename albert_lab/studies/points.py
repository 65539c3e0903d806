"""The points of an experiment: its grid after a command's overrides, each with its run, and what there is of it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from albert_lab.config.compose import MAX_POINTS, axes, expand, load
from albert_lab.config.schema import Keep, RunConfig, ScaleConfig
from albert_lab.errors import ConfigError
from albert_lab.runs import finetunings, states
from albert_lab.runs import run as runs
from albert_lab.runs.states import State
from albert_lab.studies.claims import number_in
from albert_lab.studies.experiment import Choice, Experiment, key_of
from albert_lab.studies.starts import adopt, check_start, find_parent


@dataclass(frozen=True)
class Point:
    """One run of an experiment, and what there was of it when this was first asked; several points may share a run.

    Attributes:
        labels: its row, as a label of each axis.
        parent: the point that it starts from, and keep what it keeps of that one.
        known: its run, if that is known; is_existing says that it is none of the study's own.
        tasks: the task of each downstream column of the table, by name or file; a point that is no row has none.
        seeds: those of the fine-tunings; None: the seeds of each task.
        with_random: whether its tasks are also fine-tuned from random weights of its shape.
    """

    labels: dict[str, str]
    config: RunConfig
    parent: "Point | None" = None
    keep: Keep = "weights"
    known: runs.Run | None = None
    is_existing: bool = False
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
        if self.known or self.parent is None:
            return self.known or runs.plan(self.config)
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
        return replace(self, known=self.run, parent=self.parent and self.parent.again())

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
        values = self.values
        return " ".join(f"{axis}={_shown(values[axis], label)}" for axis, label in self.labels.items())

    @property
    def row(self) -> str:
        """Its row in tables; a single model has the name of its run, without the digest."""
        return self.label or self.run.name.rpartition("_seed")[0].replace("_", " ")

    @property
    def title(self) -> str:
        """Its row and its seed, as people call the run."""
        return f"{self.row} seed {self.config.seed}"


def _shown(value: str, label: str) -> str:
    is_replaced = number_in(value) is not None and number_in(label) is not None and not is_alike(value, label)
    return f"{value} (paper: {label})" if is_replaced else label


def is_alike(value: str, label: str) -> bool:
    """Whether two texts are equal, but for case and quotes, or the same number."""
    number = number_in(label)  # Hydra's grammar writes True for true, and keeps the quotes of a text with spaces
    return value.strip("'\"").casefold() == label.casefold() or (number is not None and number == number_in(value))


def points(experiment: Experiment, overrides: Sequence[str] = ()) -> list[Point]:
    """Every run of an experiment, in the order of its rows; seeds vary fastest.

    Overrides win over the experiment: a swept key replaces or adds an axis, a single value fixes one. Seeds come from
    the experiment or else from the scale, unless given.

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

    def __init__(self, experiment: Experiment, overridden: Mapping[str, list[str]]) -> None:
        self._links, self._overridden = experiment.links, overridden
        self._load = cache(load)  # the seeds of a row, and points of which it is the parent, have one configuration
        self._made: dict[tuple[tuple[str, str], ...], Point | None] = {}  # None: in the making
        self._start = None
        if isinstance(experiment.start_from, str):
            run = find_parent(experiment.start_from)
            self._start = Point({"run": run.name}, run.config, known=run, is_existing=True)
        self._of_experiment = {*map(key_of, experiment.fixed)}
        fixed = dict(text.split("=", 1) for text in experiment.fixed)
        fixed |= {key: values[0] for key, values in overridden.items() if len(values) == 1}
        swept = {key: values for key, values in overridden.items() if len(values) > 1}
        self._scale = load([f"{key}={value}" for key, value in fixed.items() if re.match(r"scale\b", key)]).scale
        self._fixed = {key: fixed[key] for key in fixed if key not in {*experiment.axes, *swept, "seed"}}
        # Of rows, and of rows that they start from.
        self._choices = {axis: experiment.grid[axis] | experiment.values_beyond(axis) for axis in experiment.axes}
        self.rows: dict[str, list[str]] = {}
        for axis, known in self._choices.items():
            beyond = experiment.beyond_paper.get(axis)
            is_shown = beyond is not None and self._scale.name in beyond.scales
            self.rows[axis] = [*(known if is_shown else experiment.grid[axis])]
        for axis in self.rows.keys() & overridden.keys():
            given = self._given(axis, overridden[axis])
            self.rows[axis], self._choices[axis] = [*given], self._choices[axis] | given
        self.rows |= {key: values for key, values in swept.items() if key not in (*self.rows, "seed")}
        own = [str(choice) for choice in experiment.grid.get("seed", {}).values()]
        own = own or ([fixed["seed"]] if "seed" in fixed else [])
        self.seeds = overridden.get("seed") or own or [str(seed) for seed in self._scale.seeds]
        for axis, labels in self.rows.items():
            keys = [{key_of(text) for text in self._overrides({axis: label})} - {axis} for label in labels]
            for key in sorted(set.intersection(*keys) & overridden.keys()):
                choose = f"choose rows by {axis}={','.join(self._choices[axis])}"
                raise ConfigError(f"{key}={','.join(overridden[key])}: the rows of the table set this key; {choose}")

    def _given(self, axis: str, values: Sequence[str]) -> dict[str, Choice]:
        """The rows of given values: the label that has this value at this scale, or else the value itself."""
        known = self._choices[axis]
        roles = {label: choice for label, choice in known.items() if isinstance(choice, str) and "${" in choice}
        here = {str(self._config({axis: choice}).value(axis)): label for label, choice in roles.items()}
        values = [next((label for label in known if is_alike(value, label)), value) for value in values]
        own = {value for value in values if value not in here}  # another value cannot have their label
        given: dict[str, Choice] = {}
        for value in values:
            label = value if here.get(value, value) in own else here.get(value, value)
            if label in given:
                raise ConfigError(f"{axis}={','.join(values)}: two of these values are the same row")
            choice = known.get(value, value)
            given[label] = value if isinstance(choice, str) else choice  # a value that is given is used as it is
        return given

    def _overrides(self, labels: Mapping[str, str]) -> list[str]:
        choices = [(axis, self._choices.get(axis, {}).get(label, label)) for axis, label in labels.items()]
        return [
            text for axis, choice in choices for text in ([f"{axis}={choice}"] if isinstance(choice, str) else choice)
        ]

    def point(self, labels: dict[str, str], seed: str) -> Point:
        """The point of labels, which may have keys that are no axes."""
        key, row = (*labels.items(), ("seed", seed)), " ".join(f"{axis}={label}" for axis, label in labels.items())
        if key in self._made:
            if not (found := self._made[key]):
                raise ConfigError(f"start_from has a cycle: {row} starts from itself")
            return found
        self._made[key] = None
        try:
            config = self._configured(labels, seed)
        except ConfigError as error:
            is_of_row = row and row not in str(error) and "unknown key" not in str(error)
            raise (ConfigError(f"{row}: {error}") if is_of_row else error) from error
        # A row with a key that is no axis is a trunk, which has no parent.
        links = (
            [link for link in self._links if link.row.items() <= labels.items()] if {*labels} <= {*self.rows} else []
        )
        parent = self.point(labels | links[0].parent, seed) if links else self._start
        self._made[key] = found = Point(labels, config, parent, links[0].keep if links else "weights")
        return found

    def _configured(self, labels: Mapping[str, str], seed: str) -> RunConfig:
        texts = self._overrides(labels)
        chosen = dict(text.split("=", 1) for text in texts)
        # Composing takes time, and the seeds of a row differ in nothing else.
        if not re.fullmatch("0|[1-9][0-9]{0,8}", seed) or "${seed}" in str((self._fixed, chosen)):
            config = self._config(chosen | {"seed": seed})
        else:
            config = self._config(chosen).model_copy(update={"seed": int(seed)})
        if not self._start:
            return config
        return adopt(config, self._start.run, {*self._overridden, *map(key_of, texts)}, self._of_experiment)

    def _config(self, chosen: Mapping[str, str]) -> RunConfig:
        texts = {key: _in_role(value, self._scale) for key, value in (self._fixed | dict(chosen)).items()}
        return self._load(tuple(f"{key}={value}" for key, value in texts.items()))


def _in_role(value: str, scale: ScaleConfig) -> str:
    """An override's value, with each value of the paper in it replaced by that of the scale."""

    def value_of_scale(match: re.Match[str]) -> str:
        key, paper = match.groups()
        roles = scale.roles.get(key, {})
        if paper not in roles:
            known = ", ".join(roles) or "none"
            raise ConfigError(f"scale={scale.name} has no value for the paper's {key}={paper} (it has: {known})")
        return str(roles[paper])

    return re.sub(r"\$\{scale\.roles\.(\w+)\.([\w-]+)\}", value_of_scale, value)
