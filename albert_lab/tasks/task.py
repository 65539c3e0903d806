"""A downstream task: where its data is, how it is read and scored, and how a model is fine-tuned at each scale."""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field, PrivateAttr, ValidationError, model_validator

from albert_lab import paths
from albert_lab.config.compose import parse
from albert_lab.config.schema import PositiveInt, RunConfig, Section
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import read_yaml
from albert_lab.naming import Name
from albert_lab.tasks.examples import Issue
from albert_lab.tasks.formats.glue import GlueFormat
from albert_lab.tasks.formats.race import RaceFormat
from albert_lab.tasks.formats.squad import SquadFormat

Format = Annotated[GlueFormat | SquadFormat | RaceFormat, Field(discriminator="name")]

# The scale whose settings are written out; the other scales write what differs.
FULL_SCALE = "paper"
# Measured at H = 96 and 384; at 768 it gives what published fine-tunings of BERT-base use (see DECISIONS.md).
RATE_EXPONENT = 1.5
# What the file of a task leaves out, by its kind.
DEFAULTS = paths.CONF / "task_defaults.yaml"
NUM_SPECIAL_TOKENS = 3  # [CLS] and both [SEP]
# The first part of the paths of data that is made of a corpus (see corpus_tasks.py).
CORPUS_FAMILY = "corpus"
# What stands before the name of a user's file that is named like a task of the project: each has records of its own.
OWN = "own-"


class HubSource(Section):
    """The task's data set on the Hugging Face Hub, or a local folder that `datasets` reads, and its splits by ours."""

    path: str
    name: str | None
    splits: dict[str, str]


class TaskSettings(Section):
    """How a model is fine-tuned on the task; what has a default is left out where the kind of task has no such thing.

    optimizer is torch's AdamW, or the release's Adam, which has no bias correction. learning_rate is for a model of
    rate_hidden_size, and smaller for a wider one (see RATE_EXPONENT); where rate_hidden_size is null, it stands for
    every model. Lengths count tokens.
    checkpoint_steps is the distance of evaluations on the dev set; train_examples and dev_examples subsample.
    retries says how often a diverged fine-tuning is made again, each time at half the learning rate.
    question_length bounds the question (span) or the question with its option (multiple choice). empty_windows is the
    share of the training windows without the answer that are kept (span).
    """

    optimizer: Literal["adamw", "adam-release"]
    learning_rate: float = Field(gt=0)
    rate_hidden_size: int | None = Field(gt=0)
    batch_size: int = PositiveInt
    steps: int = PositiveInt
    warmup_steps: int = Field(ge=0)
    checkpoint_steps: int = PositiveInt
    dropout: float = Field(ge=0, lt=1)
    classifier_dropout: float = Field(ge=0, lt=1)
    max_sequence_length: int = Field(ge=8)
    train_examples: int | None = Field(gt=0)
    dev_examples: int | None = Field(gt=0)
    seeds: tuple[int, ...] = Field(min_length=1)
    retries: int = Field(ge=0)
    question_length: int | None = Field(default=None, gt=0)
    stride: int | None = Field(default=None, gt=0)
    answer_length: int | None = Field(default=None, gt=0)
    n_best: int | None = Field(default=None, gt=0)
    beam_size: int | None = Field(default=None, gt=0)
    empty_windows: float = Field(default=1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskSettings":
        if self.warmup_steps > self.steps:
            raise ValueError(f"warmup_steps={self.warmup_steps} is more than steps={self.steps}")
        room = self.max_sequence_length - (self.question_length or 0) - NUM_SPECIAL_TOKENS
        if room < (self.stride or 1):
            raise ValueError(
                f"max_sequence_length={self.max_sequence_length} leaves {room} tokens of text"
                f" beside question_length={self.question_length}, fewer than the stride of {self.stride or 1}"
            )
        return self


class TaskConfig(Section):
    """One task, as its file in conf/task/ or a file of the user's has it.

    kind is the module of this package that fine-tunes on it. data names a file or folder a split, under the tasks
    folder. main names the scores whose mean is the task's column. start_from is a task to fine-tune on before.
    note is a footnote of the tables that have its column. official_examples counts those of the official files by
    split, where there are any. version rises with every change of the file that moves numbers.
    """

    name: Name
    title: str
    kind: str
    source: str
    version: int = PositiveInt
    data: dict[str, str]
    hub: HubSource | None
    format: Format
    metrics: tuple[str, ...] = Field(min_length=1)
    main: tuple[str, ...] = Field(min_length=1)
    start_from: str | None
    note: str | None
    official_examples: dict[str, int]
    settings: dict[str, TaskSettings]
    _folder: Path | None = PrivateAttr(default=None)  # of a user's file: where its data may lie

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskConfig":
        for split in ("train", "dev"):
            if split not in self.data:
                raise ValueError(f"data.{split} must be given")
        for key, names, known in (("metrics", self.metrics, self.format.scores), ("main", self.main, self.metrics)):
            if unknown := [name for name in names if name not in known]:
                raise ValueError(f"{key}={unknown[0]} is unknown (allowed: {', '.join(known)})")
        for scale, settings in self.settings.items():
            if missing := [key for key in self.format.needs if getattr(settings, key) is None]:
                raise ValueError(f"settings.{scale}.{missing[0]} must be given where format.name is {self.format.name}")
        return self

    @property
    def family(self) -> str:
        """The sub-folder of the tasks folder that its data shares with its like: glue, squad, race."""
        return self.data["train"].split("/")[0]

    @property
    def is_made_of_corpus(self) -> bool:
        """Whether its data is made of the corpus of a run, instead of being brought."""
        return self.hub is None and self.family == CORPUS_FAMILY and not self._lies_beside("train")

    @property
    def folder(self) -> Path | None:
        """The folder of a user's file; None where it is a task of the project."""
        return self._folder

    def beside(self, folder: Path) -> "TaskConfig":
        """The same task with data that is looked for in a folder before the tasks folder."""
        found = self.model_copy()
        found._folder = folder
        return found

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
        """The settings of a run's scale with a learning rate for its width, and lengths that its own length allows.

        Where the sequences must be shorter, question length and stride shrink in the same proportion.

        Raises:
            ConfigError: no settings for the scale, or a pre-training length that is too short for the task.
        """
        settings, longest = self.at(config.scale.name), config.max_sequence_length
        changed: dict[str, Any] = {}
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
        """Where the data of a split is: beside a user's file where it lies there, else under the tasks folder.

        Raises:
            ConfigError: the task has no such split.
        """
        if split not in self.data:
            raise ConfigError(f"{self.name} has no split {split} (it has: {', '.join(self.data)})")
        return (self._folder if self._folder and self._lies_beside(split) else folder) / self.data[split]

    def check_data(self, folder: Path, splits: Sequence[str]) -> None:
        """Raise what read() would raise of splits that are not there, without reading those that are."""
        for split in splits:
            if not self.file(folder, split).exists():
                self.read(folder, split)

    def read(self, folder: Path, split: str) -> tuple[list[Any], list[Issue]]:
        """The examples of a split, of its format's class, and what is wrong with some.

        One without a usable label is left out of train, and stays in every other split.

        Raises:
            MissingDataError: its file or folder is not there.
            ConfigError: the task has no such split, or the file cannot be used.
        """
        file = self.file(folder, split)
        if not file.exists():
            fetch = f", or run `albert-lab data fetch {self.family}`" if self.hub else ""
            own = f" (nor in {self._folder})" if self._folder else ""
            put = "put the official files there" if self.hub else "put it there"
            raise MissingDataError(f"{self.name}: no {split} data at {file}{own}: {put}{fetch}")
        return self.format.read(file, labelled=split == "train")

    def main_score(self, scores: Mapping[str, float]) -> float:
        """The number that stands for the task: SQuAD's is the mean of F1 and EM (the paper's Avg)."""
        return sum(scores[name] for name in self.main) / len(self.main)


def task_names() -> list[str]:
    """Every task under conf/task/."""
    return sorted(file.stem for file in paths.CONF.glob("task/*.yaml"))


def load_task(name: str, overrides: Sequence[str] = ()) -> TaskConfig:
    """A task by its name or by the path of a user's YAML file, with `key=value` overrides.

    A user's file is the task, whatever it is called: named like a task of the project, it becomes `own-NAME`.

    Raises:
        ConfigError: no such task, text that is no YAML, a key or value that does not fit, or tasks that start from
            each other; names file and key.
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
    """The task that is fine-tuned on before; the path of a file is relative to the file that names it.

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
    file = Path(name) if name.endswith(".yaml") else paths.CONF / "task" / f"{name}.yaml"
    if not file.is_file():
        near = difflib.get_close_matches(name, task_names(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"task {name} is unknown{hint} (allowed: {', '.join(task_names())}, or a .yaml file)")
    task = _load(file, file.stat().st_mtime_ns, tuple(overrides))
    return task.beside(file.parent) if name.endswith(".yaml") else task


@cache  # a plan asks for each task many times
def _load(file: Path, _changed: int, overrides: Sequence[str]) -> TaskConfig:
    try:
        content = OmegaConf.create(read_yaml(file))
        for override in parse(overrides) if overrides else ():  # the parser takes a while to start
            if override.is_sweep_override():
                raise ConfigError(f"{override.input_line} names several values, and a task takes one")
            OmegaConf.update(content, override.key_or_group, override.value(), force_add=True)
        # JSON mode: lists may stand for tuples, numbers stay strict.
        plain: Any = OmegaConf.to_container(content, resolve=True)
        if "kind" in plain and not (str(plain["kind"]).isidentifier() and find_spec(kind_module(plain["kind"]))):
            raise ConfigError(f"{file}: kind={plain['kind']} is unknown (allowed: {', '.join(_defaults())})")
        content = {"name": file.stem} | _with_defaults(plain)
        if file.parent != paths.CONF / "task" and content["name"] in task_names():
            content["name"] = OWN + content["name"]
        return TaskConfig.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise ConfigError("\n".join(f"{file}: {_describe(detail)}" for detail in error.errors())) from error
    except OmegaConfBaseException as error:
        raise ConfigError(f"{file} cannot be used: {error}") from error


@cache
def _defaults() -> dict[str, Any]:
    """What files of tasks leave out, by kind."""
    return OmegaConf.to_container(OmegaConf.load(DEFAULTS))  # pyright: ignore[reportReturnType]


def _with_defaults(content: dict[str, Any]) -> dict[str, Any]:
    """A task's content with the settings of every scale: its own, else the kind's, else those of the full scale."""
    own, kind = content.get("settings", {}), str(content.get("kind"))
    default = _defaults().get(kind, {}).get("settings", {})
    if not isinstance(own, dict) or not all(isinstance(settings, dict) for settings in own.values()):
        return content
    full = default.get(FULL_SCALE, {}) | own.get(FULL_SCALE, {})
    filled = {}
    for scale in [*default, *(scale for scale in own if scale not in default)]:
        given = own.get(scale, {})
        filled[scale] = full | default.get(scale, {}) | given
        if "learning_rate" in given and "rate_hidden_size" not in given:  # a rate is meant as it stands
            filled[scale]["rate_hidden_size"] = None
    return content | {"settings": filled}


def kind_module(kind: str) -> str:
    """The module of a kind of task."""
    return f"albert_lab.tasks.{kind}"


def _describe(detail: Any) -> str:
    # pydantic puts the name of the format into the path of its keys.
    key = re.sub(r"^format\.(glue|squad|race)\b", "format", ".".join(map(str, detail["loc"])))
    if detail["type"] == "extra_forbidden":
        return f"unknown key {key}"
    if detail["type"] == "missing":
        return f"{key} must be given"
    if detail["type"] == "value_error":
        return f"{key + ': ' if key else ''}{detail['ctx']['error']}"
    return f"{key}={json.dumps(detail['input'])}: {detail['msg']}"
