"""A downstream task: its data, file format, metrics, and fine-tuning settings at each scale."""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, field_validator

from albert_lab import paths
from albert_lab.config.compose import groups, parse
from albert_lab.config.schema import RunConfig, digest
from albert_lab.config.section import PositiveInt, Section
from albert_lab.data.fingerprint import digest_path
from albert_lab.distinct import Distinct
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import describe, details_of, read_yaml
from albert_lab.naming import Name
from albert_lab.registry import until_included
from albert_lab.tasks.defaults import filled, is_kind, kinds, like
from albert_lab.tasks.examples import Issue, cannot_be_learnt
from albert_lab.tasks.formats.choices import ChoicesFormat
from albert_lab.tasks.formats.glue import GlueFormat
from albert_lab.tasks.formats.race import RaceFormat
from albert_lab.tasks.formats.squad import SquadFormat
from albert_lab.tasks.settings import TaskSettings

Format = Annotated[GlueFormat | SquadFormat | RaceFormat | ChoicesFormat, Field(discriminator="name")]

# Measured at H = 96 and 384; at 768 it gives what published fine-tunings of BERT-base use (see DECISIONS.md).
RATE_EXPONENT = 1.5
# Keys that cannot be checked if the kind is unknown.
KIND_DECIDES = ("format", "metrics", "main", "settings")
# The formats that a kind of task reads.
FORMATS = {"classification": ("glue",), "multiple_choice": ("race", "choices"), "span": ("squad",)}
# Prefix for a user's file that is named like a task of the project, so that their records are separate.
OWN = "own-"


class HubSource(Section):
    """The task's data set on the Hugging Face Hub or in a local folder for `datasets`, and its splits by our splits."""

    path: str
    name: str | None
    splits: dict[str, str]


class TaskConfig(Section):
    """One task: the content of its file in conf/task/ or of a user's file.

    kind is the module of this package that fine-tunes on it. data has a file or folder per split, below the tasks
    folder. main names the scores whose mean is the task's column. start_from is a task to fine-tune on first.
    note is a footnote of the tables with its column. official_examples has the numbers of examples in the official
    files by split, if any. version is incremented with every change of the file that changes results.
    """

    name: Name
    title: str
    kind: str
    source: str
    version: int = PositiveInt
    data: dict[str, str]
    hub: HubSource | None
    format: Format
    metrics: Annotated[tuple[str, ...], Distinct] = Field(min_length=1)
    main: Annotated[tuple[str, ...], Distinct] = Field(min_length=1)
    start_from: str | None
    note: str | None
    official_examples: dict[str, int]
    settings: dict[str, TaskSettings]
    _folder: Path | None = PrivateAttr(default=None)  # folder of a user's file, which may contain the data

    # Each validator reads only earlier fields, so that all problems of a file are reported at once.

    @field_validator("kind")
    @classmethod
    def _is_there(cls, kind: str) -> str:
        if not is_kind(kind):
            raise ValueError(f"kind={kind} is unknown (allowed: {', '.join(kinds())})")
        return kind

    @field_validator("data")
    @classmethod
    def _has_both(cls, data: dict[str, str]) -> dict[str, str]:
        if missing := [f"data.{split}" for split in ("train", "dev") if split not in data]:
            raise ValueError(f"{' and '.join(missing)} must be given")
        return data

    @field_validator("format")
    @classmethod
    def _is_read_by_the_kind(cls, form: Format, info: ValidationInfo) -> Format:
        known = FORMATS.get(like(info.data.get("kind", "")), (form.name,))
        if form.name not in known:
            raise ValueError(f"format.name={form.name}: kind={info.data['kind']} reads {' or '.join(known)}")
        return form

    @field_validator("metrics", "main")
    @classmethod
    def _are_known(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        form: Format | None = info.data.get("format")
        known = info.data.get("metrics") if info.field_name == "main" else form and form.scores
        if known and (unknown := [name for name in names if name not in known]):
            raise ValueError(f"{info.field_name}={unknown[0]} is unknown (allowed: {', '.join(known)})")
        return names

    @field_validator("settings")
    @classmethod
    def _are_of_known_scales(cls, settings: dict[str, TaskSettings]) -> dict[str, TaskSettings]:
        known = groups()["scale"]
        if unknown := [scale for scale in settings if scale not in known]:
            raise ValueError(f"settings.{unknown[0]}: scale={unknown[0]} is unknown (allowed: {', '.join(known)})")
        return settings

    @field_validator("settings")
    @classmethod
    def _have_what_the_format_needs(
        cls, settings: dict[str, TaskSettings], info: ValidationInfo
    ) -> dict[str, TaskSettings]:
        form: Format | None = info.data.get("format")
        missing = [
            f"settings.{scale}.{key}"
            for scale, of_scale in settings.items()
            for key in (form.needs if form else ())
            if getattr(of_scale, key) is None
        ]
        if form and missing:
            raise ValueError(f"{', '.join(missing)} must be given if format.name is {form.name}")
        kind = info.data.get("kind", "")
        unread = [f"settings.{scale}.{key}" for scale, of_scale in settings.items() for key in of_scale.unread(kind)]
        if unread:
            raise ValueError(f"{', '.join(unread)} would change nothing: a task of kind {kind} does not read it")
        return settings

    @property
    def family(self) -> str:
        """The family of the task, a sub-folder of the tasks folder: glue, squad, race."""
        return self.data["train"].split("/")[0]

    @property
    def folder(self) -> Path | None:
        """The folder of a user's file; None for a task of the project."""
        return self._folder

    def beside(self, folder: Path) -> "TaskConfig":
        """The same task; its data is searched in this folder before the tasks folder."""
        task = self.model_copy()
        task._folder = folder
        return task

    def _lies_beside(self, split: str) -> bool:
        return self._folder is not None and (self._folder / self.data[split]).exists()

    def at(self, scale: str) -> TaskSettings:
        """The settings of a scale.

        Raises:
            ConfigError: the task has none for it.
        """
        if scale not in self.settings:
            raise ConfigError(f"{self.name} has no settings for scale={scale} (it has: {', '.join(self.settings)})")
        return self.settings[scale]

    def fitted(self, config: RunConfig) -> TaskSettings:
        """The settings of a run's scale, with the learning rate for its width and lengths within its sequence length.

        If sequences must be shorter, question length and stride are reduced in the same proportion. A task that starts
        from another one keeps the pooler that was tuned there.

        Raises:
            ConfigError: no settings for the scale, or a pre-training length that is too short for the task.
        """
        settings, longest = self.at(config.scale.name), config.max_sequence_length
        changed: dict[str, Any] = {}
        if self.start_from is not None and settings.pooler == "new":
            changed["pooler"] = "pretrained"
        if settings.rate_hidden_size is not None and settings.rate_hidden_size < config.model.hidden_size:
            narrower = settings.rate_hidden_size / config.model.hidden_size
            changed["learning_rate"] = settings.learning_rate * narrower**RATE_EXPONENT
        if longest < settings.max_sequence_length:
            changed["max_sequence_length"] = longest
            for key in ("question_length", "stride"):
                value = getattr(settings, key)
                if value is not None:
                    changed[key] = max(1, value * longest // settings.max_sequence_length)
        if not changed:
            return settings
        try:
            return TaskSettings.model_validate(settings.model_dump() | changed)
        except ValidationError as error:
            raise ConfigError(f"max_sequence_length={longest} of the run is too short for {self.name}") from error

    def file(self, folder: Path, split: str) -> Path:
        """The path of a split's data: next to a user's file if it exists there, else below the tasks folder.

        Raises:
            ConfigError: the task has no such split.
        """
        if split not in self.data:
            raise ConfigError(f"{self.name} has no split {split} (it has: {', '.join(self.data)})")
        return (self._folder if self._folder and self._lies_beside(split) else folder) / self.data[split]

    def digest_own_data(self) -> str:
        """Short hash of what a user's file trains on and is scored on, and its start_from; empty without such data."""
        if self._folder is None:
            return ""
        files = [self.file(paths.tasks_data(), split) for split in ("train", "dev")]
        before = load_start(self)
        own = [digest_path(file) for file in files if file.exists()] + ([before.digest_own_data()] if before else [])
        return digest(own) if any(own) else ""

    def check_data(self, folder: Path, splits: Sequence[str]) -> None:
        """Raises the errors of read() for missing splits, without reading the others."""
        for split in splits:
            if not self.file(folder, split).exists():
                self.read(folder, split)

    def read(self, folder: Path, split: str) -> tuple[list[Any], list[Issue]]:
        """The examples of a split, in the class of its format, and their issues.

        An example without a usable label is left out of train, but kept in all other splits.

        Raises:
            MissingDataError: its file or folder does not exist.
            ConfigError: the task has no such split, or the file cannot be used, or nothing can be learnt from it.
        """
        file = self.file(folder, split)
        if not file.exists():
            fetch = f", or run `albert-lab data fetch {self.family}`" if self.hub else ""
            own = f" (nor in {self._folder})" if self._folder else ""
            put = "put the official files there" if self.hub else "put it there"
            raise MissingDataError(f"{self.name}: no {split} data at {file}{own}: {put}{fetch}")
        examples, issues = self.format.read(file, labelled=split == "train")
        if split != "test" and (reason := cannot_be_learnt(examples)):
            raise ConfigError(f"{file}: {reason}")
        return examples, issues

    def main_score(self, scores: Mapping[str, float]) -> float:
        """The headline score of the task: SQuAD's is the mean of F1 and EM (the paper's Avg).

        Raises:
            ConfigError: the examples do not give one of its scores.
        """
        if lacking := [name for name in self.main if name not in scores]:
            raise ConfigError(
                f"{self.name}: main has {', '.join(lacking)}, which these examples do not give: they give"
                f" {', '.join(scores)}"
            )
        return sum(scores[name] for name in self.main) / len(self.main)


def task_names() -> list[str]:
    """The names of all tasks in conf/task/."""
    return sorted(file.stem for file in paths.conf_files("task/*.yaml"))


def load_task(name: str, overrides: Sequence[str] = ()) -> TaskConfig:
    """A task by its name or by the path of a user's YAML file, with `key=value` overrides.

    A user's file with the name of a task of the project becomes the task `own-NAME`.

    Raises:
        ConfigError: unknown task, invalid YAML, an invalid key or value, or a cycle of start_from; the message names
            file and key.
    """
    task = _find(name, overrides)
    chain, step = [task.name], load_start(task)
    while step is not None:
        if step.name in chain:
            raise ConfigError(f"{name}: start_from leads in a circle: {' -> '.join([*chain, step.name])}")
        chain.append(step.name)
        step = load_start(step)
    return task


def load_start(task: TaskConfig) -> TaskConfig | None:
    """The task to fine-tune on first (start_from); the path of a file is relative to the file that names it.

    Raises: see load_task().
    """
    if task.start_from is None:
        return None
    folder = task.folder if task.start_from.endswith(".yaml") else None
    try:
        return _find(str(folder / task.start_from) if folder else task.start_from, ())
    except ConfigError as error:
        raise ConfigError(f"{task.name}: start_from={task.start_from}: {error}") from error


def _find(name: str, overrides: Sequence[str]) -> TaskConfig:
    file = Path(name) if name.endswith(".yaml") else paths.conf_file(f"task/{name}.yaml")
    if not file.is_file():
        if file == Path(name):
            raise ConfigError(f"task {name}: the file does not exist")
        near = difflib.get_close_matches(name, task_names(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"task {name} is unknown{hint} (allowed: {', '.join(task_names())}, or a .yaml file)")
    task = _load(file, file.stat().st_mtime_ns, tuple(overrides))
    return task if file.is_relative_to(paths.CONF) else task.beside(file.parent)


@until_included  # a plan loads each task many times
def _load(file: Path, _changed: int, overrides: Sequence[str]) -> TaskConfig:
    try:
        content = OmegaConf.create(read_yaml(file))
        for override in parse(overrides) if overrides else ():  # the parser starts slowly
            if override.is_sweep_override():
                raise ConfigError(f"{override.input_line} has several values, but a task allows only one")
            OmegaConf.update(content, override.key_or_group, override.value(), force_add=True)
        # JSON mode: lists are allowed for tuples, and numbers stay strict.
        plain: Any = OmegaConf.to_container(content, resolve=True)
        content = filled({"name": file.stem} | plain)
        is_named = file == paths.conf_file(f"task/{file.name}")
        if not is_named and content["name"] in task_names():
            content["name"] = OWN + content["name"]
        return TaskConfig.model_validate_json(json.dumps(content))
    except ValidationError as error:
        details = details_of(error)
        if any(detail["loc"] == ("kind",) for detail in details):  # the other keys depend on it
            details = [detail for detail in details if detail["loc"][0] not in KIND_DECIDES]
        raise ConfigError("\n".join(f"{file}: {_describe(detail)}" for detail in details)) from error
    except OmegaConfBaseException as error:
        raise ConfigError(f"{file} cannot be used: {error}") from error


def _describe(detail: Any) -> str:
    # pydantic inserts the name of the format into the path of its keys.
    return describe(
        detail, re.sub(r"^format\.(glue|squad|race|choices)\b", "format", ".".join(map(str, detail["loc"])))
    )
