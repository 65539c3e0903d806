"""Experiments: a grid of runs with the paper's numbers beside it, read from a YAML file or made from a sweep."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from yaml import YAMLError

from albert_lab import paths
from albert_lab.config import RunConfig, axes, expand, load
from albert_lab.errors import ConfigError
from albert_lab.lab import results
from albert_lab.lab.claim import Claim
from albert_lab.lab.downstream import AVERAGE, AVERAGED
from albert_lab.tasks.task import task_names

INTRINSIC = ("mlm_accuracy", "nsp_accuracy", "sop_accuracy")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PaperTable(_Part):
    """The paper's own cells: rows carry the value of every axis and the cells exactly as printed (text)."""

    table: str
    columns: dict[str, str]
    rows: tuple[dict[str, str], ...]


class PaperCurve(_Part):
    """A curve of a figure as read off the plot: points that could be read, and between which values the rest lies.

    row names the row of ours that it stands for; panel is what it is a curve of, in the words of our columns.
    """

    panel: str
    row: str
    points: tuple[tuple[float, float], ...]
    between: tuple[float, float] | None = None


class PaperFigure(_Part):
    """A figure of the paper, approximate: x is what its horizontal axis shows."""

    figure: str
    x: str
    curves: tuple[PaperCurve, ...]


class Experiment(_Part):
    """One table of the paper, or a user's own: what is fixed, what varies, what is shown.

    An axis of the grid maps the paper's value to the override that stands for it here; where both are the same it is
    written as a plain list.
    """

    name: str
    title: str
    source: str
    fixed: tuple[str, ...] = ()
    grid: dict[str, dict[str, str]]
    columns: tuple[str, ...] = (*INTRINSIC, *AVERAGED, AVERAGE)
    paper: PaperTable | None = None
    claims: tuple[Claim, ...] = ()
    figures: tuple[str, ...] = ("learning-curves",)
    paper_figure: PaperFigure | None = None
    notes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _plain_lists(cls, content: Any) -> Any:
        if isinstance(content, dict) and isinstance(content.get("grid"), dict):
            grid = {}
            for key, values in content["grid"].items():
                pairs = values.items() if isinstance(values, dict) else ((value, value) for value in values)
                grid[str(key)] = {str(label): str(value) for label, value in pairs}
            content = content | {"grid": grid}
        return content

    @model_validator(mode="after")
    def _columns_are_known(self) -> "Experiment":
        if unknown := [column for column in self.columns if column not in scores()]:
            raise ValueError(f"columns: {unknown[0]} is unknown (allowed: {', '.join(scores())})")
        return self

    @model_validator(mode="after")
    def _paper_rows_fit(self) -> "Experiment":
        if self.paper:
            for row in self.paper.rows:
                for axis, values in self.grid.items():
                    if axis not in row:
                        raise ValueError(f"paper row {row} lacks the axis {axis}")
                    if row[axis] not in values:
                        raise ValueError(f"paper row {row}: {axis}={row[axis]} is not among {', '.join(values)}")
        return self

    @model_validator(mode="after")
    def _claims_fit(self) -> "Experiment":
        grid = {axis: self.grid[axis] for axis in self.axes}
        metrics = {*scores(), *results.NUMBERS, *(self.paper.columns if self.paper else ())}
        for number, claim in enumerate(self.claims, 1):
            try:
                claim.fit(grid, metrics)
            except ValueError as error:
                raise ValueError(f"claim {number} ({claim.check}): {error}") from error
        return self

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that make the rows of the table; seeds are averaged over."""
        return tuple(axis for axis in self.grid if axis != "seed")


@dataclass(frozen=True)
class Point:
    """One run that an experiment asks for: its row, as labels of the axes, and its configuration."""

    row: dict[str, str]
    config: RunConfig


def read(file: Path) -> Experiment:
    """An experiment from a YAML file.

    Raises:
        ConfigError: no such file, text that is no YAML, or keys that do not fit; names the file and the key.
    """
    if not file.is_file():
        raise ConfigError(f"{file} is not there: name an experiment file (.yaml)")
    try:
        # OmegaConf, since PyYAML reads 1e-4 as a string; interpolations belong to the configuration, not to this file.
        content = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
        if not isinstance(content, dict):
            raise ConfigError(f"{file} holds no keys: an experiment has title, source and grid")
        return Experiment.model_validate({"name": file.stem} | _as_text(content))
    except ValidationError as error:
        details = "; ".join(f"{'.'.join(map(str, d['loc']))}: {d['msg']}" for d in error.errors())
        raise ConfigError(f"{file}: {details}") from error
    except (OmegaConfBaseException, YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read as YAML: {error}") from error


def _as_text(value: Any) -> Any:
    """Paper cells and axis labels are text: what is printed is what was written."""
    if isinstance(value, dict):
        return {str(key): _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return value if value is None or isinstance(value, bool) else str(value)


@cache
def scores() -> tuple[str, ...]:
    """The columns of the table of runs that are shares and are printed in percent: accuracies, tasks, their average."""
    return (*INTRINSIC, *task_names(), AVERAGE)


def files() -> list[Path]:
    """The experiment files that come with the package, each of them a sub-command."""
    return sorted(paths.EXPERIMENTS.glob("*.yaml"))


@cache
def named(name: str) -> Experiment:
    """The packaged experiment of that name."""
    return read(paths.EXPERIMENTS / f"{name}.yaml")


def from_overrides(overrides: Sequence[str]) -> tuple[Experiment, list[str]]:
    """The experiment that a bare sweep asks for, and the overrides that are left fixed.

    Raises:
        ConfigError: no axis has more than one value, or a text is no override.
    """
    grid = {key: values for key, values in axes(overrides).items() if len(values) > 1 and key != "seed"}
    if not grid:
        example = "albert-lab sweep embedding_size=64,128,256,768"
        raise ConfigError(f"nothing to sweep over: give a key several values, as in `{example}`")
    name = "sweep-" + "-".join(grid)
    title = "Sweep over " + " and ".join(grid)
    content = {"name": name, "title": title, "source": "no table of the paper", "grid": grid}
    return Experiment.model_validate(content), [
        text for text in overrides if text.split("=")[0].lstrip("+") not in grid
    ]


def points(experiment: Experiment, overrides: Sequence[str] = ()) -> list[Point]:
    """Every run that an experiment asks for, rows first and seeds moving fastest.

    Overrides win over the experiment: a swept key replaces or adds an axis, a single value fixes one. Seeds come from
    the scale unless given.

    Raises:
        ConfigError: a configuration that does not fit, with the point it belongs to.
    """
    given = axes(overrides)
    fixed = {key: values[0] for text in experiment.fixed for key, values in axes([text]).items()}
    fixed |= {key: values[0] for key, values in given.items() if len(values) == 1}
    grid = {axis: values for axis, values in experiment.grid.items() if axis not in given and axis not in fixed}
    rows = {axis: given.get(axis, list(experiment.grid.get(axis, {}))) for axis in experiment.axes}
    for key, values in given.items():
        if len(values) > 1 and key not in rows and key != "seed":
            rows[key] = values
    seeds = given.get("seed")
    if seeds is None:
        base = load([f"{key}={value}" for key, value in fixed.items()])
        seeds = [str(seed) for seed in base.scale.seeds]
    found = []
    for row in expand(rows):
        for seed in seeds:
            chosen = fixed | {axis: grid.get(axis, {}).get(label, label) for axis, label in row.items()}
            chosen["seed"] = seed
            try:
                config = load([f"{key}={value}" for key, value in chosen.items()])
            except ConfigError as error:
                where = " ".join(f"{axis}={label}" for axis, label in row.items())
                raise ConfigError(f"{where}: {error}" if where else str(error)) from error
            found.append(Point(row, config))
    return found
