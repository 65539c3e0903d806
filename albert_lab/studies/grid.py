"""The grid of an experiment after the overrides of a command: its rows are chosen, checked, and
composed.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from albert_lab.config.compose import (
    MAX_POINTS,
    Settings,
    Value,
    axes,
    compose,
    expand,
    settings_of,
)
from albert_lab.config.schema import Keep, RunConfig, ScaleConfig
from albert_lab.errors import ConfigError
from albert_lab.runs import states
from albert_lab.runs.run import Run
from albert_lab.studies.claims import Labels, number_in
from albert_lab.studies.experiment import Choice, Experiment, Link
from albert_lab.studies.starts import adopt, is_convertible, scale_for, sizes_of

_PAIRS = (
    "; for pairs and no product, `albert-lab run FILE` takes a FILE with grid: {pair: {A: [KEY=1, "
    "OTHER=2], B: [KEY=3, OTHER=4]}}"
)
_ROLE = re.compile(r"\$\{scale\.roles\.(\w+)\.([\w-]+)\}")


@dataclass(frozen=True)
class Variant:
    """One configuration of an experiment, with its labels by axis.

    parent is the variant, or the run from elsewhere, that it starts from, of which it keeps `keep`.
    """

    labels: Labels
    config: RunConfig
    parent: "Variant | Run | None" = None
    keep: Keep = "weights"

    @property
    def values(self) -> Labels:
        """The value of each axis in the configuration; its label if the axis is no key but sets
        several.
        """
        return {axis: self.config.value(axis) or label for axis, label in self.labels.items()}

    @property
    def label(self) -> str:
        """The row in one line; a number that replaces one of the paper is followed by the paper's
        number.
        """
        return " ".join(
            f"{axis}={_shown(value, self.labels[axis])}" for axis, value in self.values.items()
        )


def _shown(value: str, label: str) -> str:
    """The label of a value, or both, if the value is a number that replaces one of the paper."""
    number = number_in(value)
    of_paper = number_in(label)
    if number is None or of_paper is None or number == of_paper:
        return label
    return f"{value} (paper: {label})"


@dataclass(frozen=True)
class Grid:
    """The rows that a command asks for, as values.

    asked has the labels of each axis, table those of the experiment, which rows may start from, and
    settings what each of both sets. fixed is what all rows have; given are the keys that win over
    those of the start, and written those that the experiment fixes. start is the run from elsewhere
    that all rows start from.
    """

    scale: ScaleConfig
    seeds: list[Value]
    fixed: Settings
    given: frozenset[str]
    written: frozenset[str]
    links: tuple[Link, ...] = ()
    start: Run | None = None
    asked: dict[str, list[str]] = field(default_factory=dict)
    table: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, dict[str, Settings]] = field(default_factory=dict)
    composed: dict[tuple[tuple[str, str], ...], Variant] = field(default_factory=dict)

    def settings_of(self, labels: Mapping[str, str]) -> dict[str, Value]:
        """What a row sets; a key that is no axis, as a parent may have, sets itself."""
        chosen: dict[str, Value] = {}
        for axis, label in labels.items():
            known = self.settings.get(axis, {})
            added = known[label] if label in known else settings_of([f"{axis}={label}"])
            for key in chosen.keys() & added.keys() if axis in self.settings else ():
                if chosen[key] != added[key]:
                    raise ConfigError(f"two axes set {key}, and one would win: make them one axis")
            chosen |= added
        return chosen


def variants(experiment: Experiment, overrides: Sequence[str] = ()) -> list[Variant]:
    """Every configuration of an experiment, in the order of its rows; seeds vary fastest.

    Overrides win over the experiment: a swept key replaces or adds an axis, a single value fixes
    one. A value that is given for an axis chooses the row of this label; if there is none, it is
    used as it is. Seeds come from the experiment or else from the scale, unless given. With
    start_from=RUN all rows start from that run, at its scale unless one is given.

    Raises:
        ConfigError: an invalid configuration; names the row.
    """
    grid = choose(experiment, overrides)
    number = math.prod(len(labels) for labels in grid.asked.values()) * len(grid.seeds)
    if number > MAX_POINTS:
        raise ConfigError(
            f"{number:,} runs, and {MAX_POINTS:,} is the limit of a sweep: split it into several"
        )
    return [make(grid, row, seed) for row in expand(grid.asked) for seed in grid.seeds]


def choose(experiment: Experiment, overrides: Sequence[str]) -> Grid:
    """The rows of an experiment that a command asks for; ConfigError as variants()."""
    given = axes(overrides)
    swept = [key for key, values in given.items() if len(values) > 1 and key != "seed"]
    fixed = fixed_settings(experiment, overrides)
    start_from = fixed.pop("start_from", experiment.start_from)
    start = None if isinstance(start_from, tuple) else states.find_run(str(start_from))
    if start:
        fixed = {"scale": start.config.scale.name} | fixed
    defaults = compose(
        {key: value for key, value in fixed.items() if key.partition(".")[0] == "scale"}
    )
    written = frozenset(settings_of(experiment.fixed))
    # A table fixes the shape of models from scratch; a file that names its start means the shape
    # that weights are converted to.
    is_of_encoder = isinstance(experiment.start_from, str)
    grid = Grid(
        scale=scale_for(start.config, defaults.scale) if start else defaults.scale,
        seeds=_seeds(experiment, given, fixed, defaults.scale),
        fixed=fixed,
        given=written.union(given) if is_of_encoder else frozenset(given),
        written=written,
        links=() if start else experiment.links,
        start=start,
    )
    for axis in dict.fromkeys([*experiment.axes, *swept]):
        choices = experiment.choices(axis) if axis in experiment.axes else {}
        settings = {label: _set_by(axis, choice) for label, choice in choices.items()}
        grid.table[axis] = [*choices]
        grid.settings[axis] = settings
        if axis in given:
            is_key = not choices or defaults.value(axis) is not None
            grid.asked[axis] = [*_rows_given(axis, given[axis], settings, is_key=is_key)]
        else:
            grid.asked[axis] = [*experiment.choices(axis, defaults.scale.name)]
    check(grid, swept, given)
    return grid


def fixed_settings(experiment: Experiment, overrides: Sequence[str]) -> dict[str, Value]:
    """What all rows of a command have: what the experiment fixes, and the single values of the
    command, but for keys of the experiment's grid, where a value chooses a row.
    """
    single = {
        key: next(iter(values.values()))
        for key, values in axes(overrides).items()
        if len(values) == 1
    }
    settings = settings_of(experiment.fixed) | single
    return {key: value for key, value in settings.items() if key not in experiment.grid}


def _set_by(axis: str, choice: Choice) -> Settings:
    """What a choice of an axis sets: its value, or overrides of several keys."""
    return settings_of([f"{axis}={choice}"] if isinstance(choice, str) else choice)


def _rows_given(
    axis: str, given: Mapping[str, Value], settings: dict[str, Settings], *, is_key: bool
) -> Iterator[str]:
    """The labels of an axis that a command gives; a value that is no label becomes one, if the axis
    is a key.
    """
    labels = {label.casefold(): label for label in reversed(settings)}
    for text, value in given.items():
        plain = value if isinstance(value, str) else text
        label = plain if plain in settings else labels.get(plain.casefold(), text)
        if label not in settings and not is_key:
            raise ConfigError(
                f"{axis}={text} is no row of the table (it has: {', '.join(settings)})"
            )
        settings.setdefault(label, {axis: value})
        yield label


def _seeds(
    experiment: Experiment,
    given: Mapping[str, Mapping[str, Value]],
    fixed: Settings,
    scale: ScaleConfig,
) -> list[Value]:
    """The seeds of the command, or else those that the experiment varies or fixes, or else those of
    the scale.
    """
    if "seed" in given:
        return [*given["seed"].values()]
    if "seed" in experiment.grid:
        return [settings_of([f"seed={label}"])["seed"] for label in experiment.grid["seed"]]
    return [fixed["seed"]] if "seed" in fixed else [*scale.seeds]


def check(grid: Grid, swept: Collection[str], given: Mapping[str, Iterable[str]]) -> None:
    """Raises ConfigError if rows differ in what all runs of a study share, or a command sets what
    rows set.
    """
    for axis, labels in grid.asked.items():
        for key in {key for label in labels for key in grid.settings[axis][label]}:
            if key.partition(".")[0] in ("scale", "machine", "seed"):
                raise ConfigError(
                    f"{key}: rows cannot differ in it: give one value for all, or a study for each"
                )
            # A key that the experiment fixes can be given: rows that set it keep their values.
            is_replaceable = key == axis or (key in grid.written and key not in swept)
            if key in given and not is_replaceable:
                choose_rows = f"choose rows by {axis}={','.join(grid.table[axis])}"
                raise ConfigError(
                    f"{key}={','.join(given[key])}: rows of the table set this key; {choose_rows}"
                )


def make(grid: Grid, labels: Labels, seed: Value, children: Sequence[Labels] = ()) -> Variant:
    """The variant of a row and a seed, with those that it starts from; children are rows that start
    from it.

    Raises:
        ConfigError: an invalid configuration, or a row that starts from itself; names the row.
    """
    key = (*labels.items(), ("seed", str(seed)))
    if key in grid.composed:
        return grid.composed[key]
    row = " ".join(f"{axis}={label}" for axis, label in labels.items())
    if labels in children:
        raise ConfigError(f"start_from has a cycle: {row} starts from itself")
    try:
        config = _composed(grid, labels, seed)
    except ConfigError as error:
        message = f"{row}: {error}" if row and row not in str(error) else str(error)
        raise ConfigError(message + _PAIRS * (len(labels) > 1)) from error
    link = _link(grid, labels, row)
    parent = make(grid, labels | link.parent, seed, (*children, labels)) if link else grid.start
    if not config.budget.value and parent is None:
        raise ConfigError(
            f"budget.value={config.budget.value:g} trains nothing: give it with start_from=RUN"
        )
    variant = Variant(labels, config, parent, link.keep if link else "weights")
    grid.composed[key] = variant
    return variant


def _composed(grid: Grid, labels: Mapping[str, str], seed: Value) -> RunConfig:
    chosen = grid.settings_of(labels)
    settings = {**grid.fixed, **chosen, "seed": seed}
    settings = {key: _in_role(value, grid.scale) for key, value in settings.items()}
    if grid.start is None:
        return compose(settings)
    given = {*grid.given, *chosen}
    if any(map(is_convertible, chosen)):  # the sharing of a table on depth says what its depths are
        given |= {key for key in grid.written if key.startswith("sharing")}
    return adopt(compose(sizes_of(grid.start.config) | settings), grid.start, given, grid.written)


def _in_role(value: Value, scale: ScaleConfig) -> Value:
    """The value of a setting; ${scale.roles.KEY.VALUE}, a value of the paper, is replaced by that
    of this scale.
    """
    role = _ROLE.fullmatch(value) if isinstance(value, str) else None
    if role is None:
        return value
    key, paper = role.groups()
    roles = scale.roles.get(key, {})
    if paper not in roles:
        raise ConfigError(
            f"scale={scale.name} has no value for the paper's {key}={paper} (it has: {[*roles]})"
        )
    return settings_of([f"{key}={roles[paper]}"])[key]


def _link(grid: Grid, labels: Mapping[str, str], title: str) -> Link | None:
    """The first link whose labels a row has; None if it has no parent, as a trunk.

    Raises:
        ConfigError: the row differs from a link only in values that are new in the command, so that
            its parent is not in the table.
    """
    if not labels.keys() <= grid.asked.keys():
        return None  # a trunk: a key of it is no axis
    axis_of_new = None
    for link in grid.links:
        differing = [axis for axis, label in link.row.items() if labels[axis] != label]
        if not differing:
            return link
        are_new = all(labels[axis] not in grid.table[axis] for axis in differing)
        if are_new and len(differing) < len(link.row):
            axis_of_new = differing[0]
    if axis_of_new:
        raise ConfigError(
            f"{title}: no run is named that it starts from: give one of "
            f"{', '.join(grid.table[axis_of_new])}"
        )
    return None
