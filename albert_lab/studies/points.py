"""The points of an experiment: its grid after a command's overrides, each with its configuration and its start."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from albert_lab.config.compose import MAX_POINTS, axes, expand, load
from albert_lab.config.schema import Keep, RunConfig, ScaleConfig
from albert_lab.errors import ConfigError
from albert_lab.messages import Say, quiet, with_progress
from albert_lab.runs.run import Run
from albert_lab.studies.claims import number_in
from albert_lab.studies.experiment import Choice, Experiment


@dataclass(frozen=True)
class Start:
    """The point that another one starts from, and what is kept of it."""

    point: "Point"
    keep: Keep


@dataclass(frozen=True)
class Point:
    """One run of an experiment: its row as labels of the axes, its configuration, and its start.

    run is set if the run exists already.
    """

    row: dict[str, str]
    config: RunConfig
    start: Start | None = None
    run: Run | None = None

    def value(self, axis: str) -> str:
        """The value of an axis in the configuration; its label if the axis is no key but sets several."""
        value = self.config.value(axis)
        return self.row[axis] if value is None else value

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


def points(experiment: Experiment, overrides: Sequence[str] = (), say: Say = quiet) -> list[Point]:
    """Every run of an experiment, in the order of its rows; seeds vary fastest.

    Overrides win over the experiment: a swept key replaces or adds an axis, a single value fixes one. Seeds come from
    the experiment or else from the scale, unless given.

    Raises:
        ConfigError: an invalid configuration; names the point unless the error is the same for all.
    """
    return _Points(experiment, axes(overrides), say).all()


class _Points:
    """The points of an experiment after the overrides of a command."""

    def __init__(self, experiment: Experiment, overridden: dict[str, list[str]], say: Say) -> None:
        self._say = say
        self._links = experiment.links
        self._composed: dict[tuple[tuple[str, str], ...], Point] = {}  # a parent of several points is composed once
        self._open: list[tuple[tuple[str, str], ...]] = []  # a row, its parent, its grandparent
        axes(experiment.fixed)  # only a check: its result has the braces of interpolations escaped
        fixed = dict(text.split("=", 1) for text in experiment.fixed)
        fixed |= {key: values[0] for key, values in overridden.items() if len(values) == 1 and key != "seed"}
        self._scale = _scale(fixed)
        beyond = {axis: more.values for axis, more in experiment.beyond_paper.items()}
        known = {axis: choices | beyond.get(axis, {}) for axis, choices in experiment.grid.items()}
        # A value that is given is used as it is, unless it names overrides of several keys.
        self._choices: dict[str, dict[str, Choice]] = {
            axis: {
                label: choice
                for label, choice in choices.items()
                if axis not in overridden or not isinstance(choice, str)
            }
            for axis, choices in known.items()
        }
        self.rows: dict[str, list[str]] = {}
        for axis in experiment.axes:
            more = experiment.beyond_paper.get(axis)
            printed = [*experiment.grid[axis], *(more.values if more and self._scale.name in more.scales else ())]
            self.rows[axis] = [_label(value, known[axis]) for value in overridden.get(axis, printed)]
            if len(set(self.rows[axis])) < len(self.rows[axis]):
                raise ConfigError(f"{axis}={','.join(overridden.get(axis, printed))}: two of these values are the same")
        for key, values in overridden.items():
            if len(values) > 1 and key not in self.rows and key != "seed":
                self.rows[key] = values
        self._fixed = {key: value for key, value in fixed.items() if key not in self.rows and key != "seed"}
        for axis in overridden.keys() & experiment.grid.keys() - {"seed"}:
            self.rows[axis] = self._labels(axis, known[axis], self.rows[axis])
            # A row that was not asked for can be the parent of one that was.
            self._choices[axis] |= {label: known[axis][label] for label in known[axis].keys() - {*self.rows[axis]}}
        asked = [str(choice) for choice in experiment.grid.get("seed", {}).values()]
        asked = asked or ([fixed["seed"]] if "seed" in fixed else [])
        self._seeds = overridden.get("seed") or asked or [str(seed) for seed in self._scale.seeds]
        self._refuse_what_rows_set(overridden)

    def _labels(self, axis: str, choices: Mapping[str, Choice], values: Sequence[str]) -> list[str]:
        """The rows of given values: the label that has this value at this scale, or else the value itself."""
        roles = {label: choice for label, choice in choices.items() if isinstance(choice, str) and "${" in choice}
        here = {self._resolved(axis, choice): label for label, choice in roles.items()}
        labels = {value: here.get(value, value) for value in values}
        for _ in values:  # a value that is its own label may take that of another, which is then its own label too
            own = {value for value, label in labels.items() if value == label}
            labels = {value: value if label in own else label for value, label in labels.items()}
        self._choices[axis] |= {label: value for value, label in labels.items() if value != label}
        return [labels[value] for value in values]

    def _resolved(self, axis: str, choice: str) -> str:
        texts = self._fixed | {axis: choice}
        return str(attrgetter(axis)(load([f"{key}={_in_role(text, self._scale)}" for key, text in texts.items()])))

    def _refuse_what_rows_set(self, overridden: Mapping[str, list[str]]) -> None:
        for axis, labels in self.rows.items():
            keys = [{text.split("=")[0] for text in self._overrides(axis, label)} - {axis} for label in labels]
            for key in sorted(set.intersection(*keys) & overridden.keys()):
                raise ConfigError(
                    f"{key}={','.join(overridden[key])}: the rows of the table set this key; choose rows by"
                    f" {axis}={','.join(self._choices[axis])}"
                )

    def all(self) -> list[Point]:
        number = math.prod(len(labels) for labels in self.rows.values()) * len(self._seeds)
        if number > MAX_POINTS:
            sizes = " x ".join(f"{len(labels):,} of {axis}" for axis, labels in self.rows.items())
            raise ConfigError(
                f"{sizes} x {len(self._seeds):,} seeds are {number:,} runs, and {MAX_POINTS:,} is the limit of a sweep:"
                " split it into several"
            )
        asked = ((row, seed) for row in expand(self.rows) for seed in self._seeds)
        points = [
            self._point(row, seed) for row, seed in with_progress(asked, number, "composed {} of {} runs", self._say)
        ]
        self._refuse_equal_values(points)
        self._refuse_machine_axes(points)
        return points

    def _refuse_equal_values(self, points: Sequence[Point]) -> None:
        """Values that are written differently can be equal, such as 0 and 0.0: one run would be two rows."""
        for axis in self.rows:
            plain: dict[str, str] = {}
            for point in points:
                label, value = point.row[axis], point.value(axis)
                if self._overrides(axis, label) == (f"{axis}={label}",) and plain.setdefault(value, label) != label:
                    raise ConfigError(f"{axis}={plain[value]},{label}: both are {value}")

    def _refuse_machine_axes(self, points: Sequence[Point]) -> None:
        for axis, labels in self.rows.items():
            is_shared = axis.startswith("machine.") and len(labels) > 1
            if is_shared and any(point.config.budget.unit != "seconds" for point in points):
                raise ConfigError(
                    f"{axis}={','.join(labels)}: machine settings are no part of a run whose budget is not in seconds,"
                    " so these rows would be the same runs"
                )

    def _overrides(self, axis: str, label: str) -> tuple[str, ...]:
        choice = self._choices.get(axis, {}).get(label, label)
        return (f"{axis}={choice}",) if isinstance(choice, str) else choice

    def _point(self, row: dict[str, str], seed: str, trunk: Mapping[str, str] | None = None) -> Point:
        key = (*row.items(), *(trunk or {}).items(), ("seed", seed))
        if key in self._open:
            circle = [*self._open[self._open.index(key) :], key]
            labels = (" ".join(f"{axis}={label}" for axis, label in setting if axis != "seed") for setting in circle)
            raise ConfigError(f"start_from has a cycle: {' starts from '.join(labels)}")
        if key not in self._composed:
            self._open.append(key)
            self._composed[key] = self._make(row, seed, trunk or {})
            self._open.pop()
        return self._composed[key]

    def _make(self, row: dict[str, str], seed: str, trunk: Mapping[str, str]) -> Point:
        try:
            config = self._config(row, seed, trunk)
        except ConfigError as error:
            labels = [f"{axis}={label}" for axis, label in (row | dict(trunk)).items()]
            names_itself = any(label in str(error) for label in labels)
            where = "" if names_itself or self._fails_without_rows(seed, str(error)) else f"{' '.join(labels)}: "
            raise ConfigError(f"{where}{error}") from error
        return Point(row | dict(trunk), config, None if trunk else self._start(row, seed))

    def _config(self, row: Mapping[str, str], seed: str, trunk: Mapping[str, str]) -> RunConfig:
        chosen = dict(self._fixed)
        for axis, label in row.items():
            chosen |= dict(text.split("=", 1) for text in self._overrides(axis, label))
        chosen |= trunk
        texts = [f"{key}={_in_role(value, self._scale)}" for key, value in chosen.items()]
        if not re.fullmatch("0|[1-9][0-9]{0,8}", seed) or any("${seed}" in text for text in texts):
            return load([*texts, f"seed={seed}"])
        # Composing takes time, and the seeds of a row differ in nothing else.
        return load(texts).model_copy(update={"seed": int(seed)})

    def _fails_without_rows(self, seed: str, text: str) -> bool:
        """Whether an error does not depend on the row, such as one in a typed override."""
        try:
            self._config({}, seed, {})
        except ConfigError as error:
            return str(error) == text
        return False

    def _start(self, row: dict[str, str], seed: str) -> Start | None:
        for link in self._links:
            if link.row.items() <= row.items():
                changed = {axis: label for axis, label in link.parent.items() if axis in row}
                trunk = {key: value for key, value in link.parent.items() if key not in row}
                return Start(self._point(row | changed, seed, trunk), link.keep)
        return None


def _scale(fixed: Mapping[str, str]) -> ScaleConfig:
    return load([f"{key}={value}" for key, value in fixed.items() if re.match(r"scale\b", key)]).scale


def _label(value: str, known: Collection[str]) -> str:
    """The label that a value names, written alike or as the same number; the value itself if there is none."""
    if value in known:
        return value
    # Hydra's grammar writes True for true, and keeps the quotes of a text with spaces.
    word = value.strip("'\"").casefold()
    number = number_in(word)
    alike = [label for label in known if label.casefold() == word]
    equal = [label for label in known if number is not None and number_in(label) == number]
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
