"""The points of an experiment: its grid after a command's overrides, each with its configuration and its start."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from albert_lab.config.compose import MAX_POINTS, axes, expand, load
from albert_lab.config.schema import Keep, RunConfig, ScaleConfig
from albert_lab.errors import ConfigError
from albert_lab.runs import run as runs
from albert_lab.studies.claims import number_in
from albert_lab.studies.experiment import Choice, Experiment
from albert_lab.studies.starts import check_start


@dataclass(frozen=True)
class Point:
    """One run of an experiment: its row as labels of the axes, its configuration, and the point that it starts from.

    keep says what is kept of that one; existing is set if the run exists already.
    """

    row: dict[str, str]
    config: RunConfig
    parent: "Point | None" = None
    keep: Keep = "weights"
    existing: runs.Run | None = None

    @cached_property
    def run(self) -> runs.Run:
        """Its run; reads the text to name it.

        Raises:
            ConfigError: it cannot start from its parent.
            MissingDataError: text is missing.
        """
        if self.existing or self.parent is None:
            return self.existing or runs.plan(self.config)
        above = self.parent.run
        run = runs.plan(self.config, runs.StartFrom(run=above.name, keep=self.keep))
        try:
            check_start(run, above, self.keep)
        except ConfigError as error:
            label, parent_label = (place.label or "the run" for place in (self, self.parent))
            raise ConfigError(f"{label} cannot start from {parent_label}: {error}") from error
        return run

    @property
    def lineage(self) -> list["Point"]:
        """The points that it starts from, oldest first, and itself."""
        return [*(self.parent.lineage if self.parent else ()), self]

    def value(self, axis: str) -> str:
        """The value of an axis in the configuration; its label if the axis is no key but sets several."""
        value = self.config.value(axis)
        return self.row[axis] if value is None else value

    def is_plain(self, axis: str) -> bool:
        """Whether an axis is a key whose value is its label, maybe written as another number."""
        here, label = self.config.value(axis), self.row[axis]
        return here == label or (
            here is not None and number_in(here) is not None and number_in(here) == number_in(label)
        )

    def as_columns(self) -> dict[str, str]:
        return {axis: self.value(axis) for axis in self.row} | {f"paper_{axis}": self.row[axis] for axis in self.row}

    @property
    def label(self) -> str:
        """The row in one line; a number that replaces one of the paper is followed by the paper's number."""
        return " ".join(f"{axis}={self._labelled(axis)}" for axis in self.row)

    def _labelled(self, axis: str) -> str:
        here, label = self.value(axis), self.row[axis]
        numbers = number_in(here), number_in(label)
        return label if None in numbers or numbers[0] == numbers[1] else f"{here} (paper: {label})"


def points(experiment: Experiment, overrides: Sequence[str] = ()) -> list[Point]:
    """Every run of an experiment, in the order of its rows; seeds vary fastest.

    Overrides win over the experiment: a swept key replaces or adds an axis, a single value fixes one. Seeds come from
    the experiment or else from the scale, unless given.

    Raises:
        ConfigError: an invalid configuration; names the point.
    """
    return _Points(experiment, axes(overrides)).all()


class _Points:
    """The points of an experiment after the overrides of a command."""

    def __init__(self, experiment: Experiment, overridden: Mapping[str, list[str]]) -> None:
        self._links = experiment.links
        self._load = cache(load)  # the seeds of a row, and points of which it is the parent, have one configuration
        fixed = dict(text.split("=", 1) for text in experiment.fixed)
        fixed |= {key: values[0] for key, values in overridden.items() if len(values) == 1}
        self._scale = load([f"{key}={value}" for key, value in fixed.items() if re.match(r"scale\b", key)]).scale
        swept = [key for key, values in overridden.items() if len(values) > 1]
        keys = {*experiment.axes, *swept, "seed"}
        self._fixed = {key: value for key, value in fixed.items() if key not in keys}
        self._choices: dict[str, dict[str, Choice]] = {}  # of rows, and of rows that they start from
        self.rows: dict[str, list[str]] = {}
        for axis in experiment.axes:
            beyond = experiment.beyond_paper.get(axis)
            known = experiment.grid[axis] | (beyond.values if beyond else {})
            if axis in overridden:
                given = self._given(axis, overridden[axis], known)
                self.rows[axis], self._choices[axis] = [*given], known | given
            else:
                is_shown = beyond is not None and self._scale.name in beyond.scales
                self.rows[axis], self._choices[axis] = [*(known if is_shown else experiment.grid[axis])], known
        self.rows |= {key: overridden[key] for key in swept if key not in (*self.rows, "seed")}
        own = [str(choice) for choice in experiment.grid.get("seed", {}).values()]
        own = own or ([fixed["seed"]] if "seed" in fixed else [])
        self._seeds = overridden.get("seed") or own or [str(seed) for seed in self._scale.seeds]
        self._refuse_what_rows_set(overridden)

    def _given(self, axis: str, values: Sequence[str], known: Mapping[str, Choice]) -> dict[str, Choice]:
        """The rows of given values: the label that has this value at this scale, or else the value itself."""
        roles = {label: choice for label, choice in known.items() if isinstance(choice, str) and "${" in choice}
        here = {str(self._config({axis: choice}).value(axis)): label for label, choice in roles.items()}
        values = [_label(value, known) for value in values]
        own = {value for value in values if value not in here}  # another value cannot have their label
        given: dict[str, Choice] = {}
        for value in values:
            label = value if here.get(value, value) in own else here.get(value, value)
            if label in given:
                raise ConfigError(f"{axis}={','.join(values)}: two of these values are the same row")
            choice = known.get(value, value)
            given[label] = value if isinstance(choice, str) else choice  # a value that is given is used as it is
        return given

    def _refuse_what_rows_set(self, overridden: Mapping[str, list[str]]) -> None:
        for axis, labels in self.rows.items():
            keys = [{text.split("=")[0] for text in self._overrides(axis, label)} - {axis} for label in labels]
            for key in sorted(set.intersection(*keys) & overridden.keys()):
                raise ConfigError(
                    f"{key}={','.join(overridden[key])}: the rows of the table set this key; choose rows by"
                    f" {axis}={','.join(self._choices[axis])}"
                )

    def all(self) -> list[Point]:
        number = math.prod(len(labels) for labels in (*self.rows.values(), self._seeds))
        if number > MAX_POINTS:
            raise ConfigError(f"{number:,} runs, and {MAX_POINTS:,} is the limit of a sweep: split it into several")
        made: dict[tuple[tuple[str, str], ...], Point] = {}
        return [self._point(row, seed, made) for row in expand(self.rows) for seed in self._seeds]

    def _overrides(self, axis: str, label: str) -> tuple[str, ...]:
        choice = self._choices.get(axis, {}).get(label, label)
        return (f"{axis}={choice}",) if isinstance(choice, str) else choice

    def _point(
        self,
        row: dict[str, str],
        seed: str,
        made: dict[tuple[tuple[str, str], ...], Point],
        below: tuple[dict[str, str], ...] = (),
    ) -> Point:
        """The point of a row, which may have keys that are no axes; `made` has others, `below` those that need it."""
        if row in below:
            labels = (" ".join(f"{axis}={label}" for axis, label in each.items()) for each in (*below, row))
            raise ConfigError(f"start_from has a cycle: {' starts from '.join(labels)}")
        key = (*row.items(), ("seed", seed))
        if key in made:
            return made[key]
        labels = " ".join(f"{axis}={label}" for axis, label in row.items())
        try:
            config = self._seeded(row, seed)
        except ConfigError as error:
            is_of_row = bool(labels) and labels not in str(error) and "unknown key" not in str(error)
            raise ConfigError(f"{labels}: {error}" if is_of_row else str(error)) from error
        # A row with a key that is no axis is a trunk, which has no parent.
        links = [link for link in self._links if link.row.items() <= row.items()] if {*row} <= {*self.rows} else []
        parent = self._point(row | links[0].parent, seed, made, (*below, row)) if links else None
        made[key] = Point(row, config, parent, links[0].keep if links else "weights")
        return made[key]

    def _seeded(self, row: Mapping[str, str], seed: str) -> RunConfig:
        chosen = dict(text.split("=", 1) for axis, label in row.items() for text in self._overrides(axis, label))
        # Composing takes time, and the seeds of a row differ in nothing else.
        if not re.fullmatch("0|[1-9][0-9]{0,8}", seed) or "${seed}" in str((self._fixed, chosen)):
            return self._config(chosen | {"seed": seed})
        return self._config(chosen).model_copy(update={"seed": int(seed)})

    def _config(self, chosen: Mapping[str, str]) -> RunConfig:
        texts = {key: _in_role(value, self._scale) for key, value in (self._fixed | dict(chosen)).items()}
        return self._load(tuple(f"{key}={value}" for key, value in texts.items()))


def _label(value: str, known: Collection[str]) -> str:
    """The label that a value names, written alike or as the same number; the value itself if there is none."""
    # Hydra's grammar writes True for true, and keeps the quotes of a text with spaces.
    word = value.strip("'\"").casefold()
    alike = [label for label in known if label == value] + [label for label in known if label.casefold() == word]
    equal = [label for label in known if number_in(word) is not None and number_in(label) == number_in(word)]
    return next(iter(alike + equal), value)


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
