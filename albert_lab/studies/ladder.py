"""Ladders: an experiment along rungs of size or budget, each a plan of ordinary runs, read from conf/ladder/."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from albert_lab import paths
from albert_lab.config.compose import axes, load
from albert_lab.config.schema import RunConfig
from albert_lab.cost import counts
from albert_lab.cost.rates import price
from albert_lab.errors import ConfigError
from albert_lab.files import describe, details_of, read_yaml
from albert_lab.naming import Name
from albert_lab.record import Record
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.plan import Plan, PlannedPoint, plan_study

_BUDGET = "budget.value"


class Rung(Record):
    """Settings of all runs of a rung, and its budget as a multiple of the configuration's."""

    settings: tuple[str, ...] = ()
    budget: float = Field(default=1.0, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _of_settings(cls, content: Any) -> Any:
        return {"settings": content} if isinstance(content, list) else content


class Ladder(Record):
    """Rungs, lowest first, and the compute at which a trend is read off.

    Attributes:
        name: of its file.
        title: shown in reports.
        tokens_per_parameter: the budget of a rung; None: that of the configuration.
        parameters_of: settings of the model whose parameters count for it.
        values: of axes that stay in proportion along the rungs, in place of the experiment's: overrides by label.
        paper_labels: the paper's labels of such values, where it has them.
        at_least: the smallest value of a setting; rows below it are left out of a rung.
        predict: settings of the configuration whose compute is the place of the prediction.
        rungs: by name.
    """

    name: Name
    title: str
    tokens_per_parameter: Annotated[float, Field(gt=0)] | None = None
    parameters_of: tuple[str, ...] = ()
    values: dict[str, dict[str, tuple[str, ...]]] = Field(default={})
    paper_labels: dict[str, dict[str, str]] = Field(default={})
    at_least: dict[str, float] = Field(default={})
    predict: tuple[str, ...]
    rungs: dict[Name, Rung] = Field(min_length=2)


@dataclass(frozen=True)
class PlannedRung:
    """A rung with its plan: all rows of the experiment, with each seed."""

    name: str
    plan: Plan

    @property
    def points(self) -> tuple[PlannedPoint, ...]:
        return self.plan.points

    def updated(self) -> "PlannedRung":
        return replace(self, plan=self.plan.updated())

    def until(self, look: int | None) -> "PlannedRung":
        """The rung with the seeds of so many looks; None: of all."""
        return replace(self, plan=self.plan.at_look(self.plan.seed_plan.last(look)))

    @property
    def seeds(self) -> list[int]:
        return list(dict.fromkeys(item.point.config.seed for item in self.points))

    def of_seed(self, seed: int) -> tuple[PlannedPoint, ...]:
        return tuple(item for item in self.points if item.point.config.seed == seed)


def known() -> list[str]:
    return sorted(file.stem for file in paths.conf_files("ladder/*.yaml"))


def read(name: str) -> Ladder:
    """The ladder of a name or a .yaml file.

    Raises:
        ConfigError: no such ladder, or invalid keys; names the file and the key.
    """
    file = Path(name) if name.endswith(".yaml") else paths.conf_file(f"ladder/{name}.yaml")
    if not file.is_file():
        raise ConfigError(f"--along {name}: no such ladder (allowed: {', '.join(known())}, or a .yaml file)")
    try:
        return Ladder.model_validate({"name": file.stem} | read_yaml(file))
    except ValidationError as error:
        raise ConfigError(f"{file}: {'; '.join(map(describe, details_of(error)))}") from error


def plan_rungs(
    experiment: Experiment, ladder: Ladder, overrides: Sequence[str], tasks: Sequence[str] | None = None
) -> list[PlannedRung]:
    """The rungs of an experiment, in the order of the ladder; writes nothing.

    Raises:
        ConfigError: an override of what the rungs set, or rungs without two different rows.
        MissingDataError: see plan_study().
    """
    overridden = axes(overrides)
    own_values = {axis: values for axis, values in ladder.values.items() if axis in experiment.grid}
    experiment = experiment.model_copy(update={"grid": experiment.grid | own_values})
    rungs = []
    for name, rung in ladder.rungs.items():
        settings = _settings(experiment, ladder, rung, overridden)
        for key in sorted(settings.keys() & overridden.keys()):
            if key == _BUDGET and not ladder.tokens_per_parameter:  # a rung multiplies it
                continue
            raise ConfigError(f"{key}={','.join(overridden[key])}: the rungs of the ladder {ladder.name} set this key")
        texts = [text for text in overrides if text.split("=")[0] not in settings]
        texts += [f"{key}={value}" for key, value in settings.items()]
        try:
            planned = plan_study(experiment, texts, tasks)
        except ConfigError as error:
            raise ConfigError(f"rung {name}: {error}") from error
        kept = tuple(item for item in planned.points if _is_large_enough(item.point.config, ladder.at_least))
        if kept:
            _check_rows(name, kept)
            rungs.append(PlannedRung(name, replace(planned, points=kept)))
    if not rungs:
        raise ConfigError(f"the ladder {ladder.name} leaves out every row: all are below {dict(ladder.at_least)}")
    return rungs


def looks_of(rungs: Sequence[PlannedRung]) -> tuple[int, ...]:
    """The numbers of seeds at which the ladder is judged, as in a study: those of the scale, or all that are given."""
    return rungs[0].plan.seed_plan.looks


def in_order(rungs: Sequence[PlannedRung]) -> Iterator[tuple[PlannedRung, int]]:
    """Each rung with each of its seeds, in the order that tells most first.

    All rungs with the seeds of the first look, from the lowest up, then the same with those of the next look: the
    interval of a slope shrinks more with a rung than with a seed.
    """
    yield from ((rung, seed) for rung, seeds in by_looks(rungs) for seed in seeds)


def by_looks(rungs: Sequence[PlannedRung]) -> Iterator[tuple[PlannedRung, list[int]]]:
    """Each rung with its seeds of the first look, then each with those that the next look adds, and so on."""
    for start, end in pairwise((0, *looks_of(rungs))):
        yield from ((rung, rung.seeds[start:end]) for rung in rungs)


def place_of_prediction(ladder: Ladder) -> float:
    """The training FLOPs of the configuration at whose compute the trend is read off."""
    return price(load(ladder.predict), 1.0).flops


def _settings(
    experiment: Experiment, ladder: Ladder, rung: Rung, overridden: Mapping[str, list[str]]
) -> dict[str, str]:
    own = dict(text.split("=", 1) for text in rung.settings)
    varied = {*experiment.axes, *(key for key, values in overridden.items() if len(values) > 1)}
    settings = {key: value for key, value in own.items() if key not in varied}
    common = {key: values[0] for key, values in overridden.items() if len(values) == 1 and key not in experiment.grid}
    if ladder.tokens_per_parameter:
        counted = common | own | dict(text.split("=", 1) for text in ladder.parameters_of)
        tokens = ladder.tokens_per_parameter * counts.count_parameters(_load(counted)).total
        settings |= {"budget": "tokens", _BUDGET: str(round(tokens * rung.budget))}
    elif rung.budget != 1:
        value = _load(common | own).budget.value * rung.budget
        settings[_BUDGET] = f"{value:g}" if value % 1 else str(int(value))
    return settings


def _load(settings: Mapping[str, str]) -> RunConfig:
    return load([f"{key}={value}" for key, value in settings.items()])


def _is_large_enough(config: RunConfig, least: Mapping[str, float]) -> bool:
    for key, bound in least.items():
        value: Any = config
        for part in key.split("."):
            if not hasattr(value, part):
                raise ConfigError(f"at_least: {key} is no setting")
            value = getattr(value, part)
        if value < bound:
            return False
    return True


def _check_rows(name: str, points: Sequence[PlannedPoint]) -> None:
    rows = {tuple(item.point.row.items()) for item in points}
    seeds = {item.point.config.seed for item in points}
    if len(rows) < 2:
        raise ConfigError(f"rung {name} has a single row, and nothing to compare it with: vary a setting")
    if len({item.run.name for item in points}) < len(rows) * len(seeds):
        raise ConfigError(f"rung {name}: some rows are the same run, since the rung sets what they differ in")
