"""A downstream task: its data, file format, metrics, and fine-tuning settings at each scale."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError, model_validator

from albert_lab import own_code, paths
from albert_lab.config.compose import groups
from albert_lab.config.schema import RunConfig
from albert_lab.config.section import DistinctSeeds, Section
from albert_lab.data.corpus import split_of
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import Name, check, check_known, read_yaml
from albert_lab.tasks.formats import ChoicesFormat, GlueFormat, RaceFormat, SquadFormat

Format = Annotated[
    GlueFormat | SquadFormat | RaceFormat | ChoicesFormat, Field(discriminator="name")
]

Positive = Annotated[int, Field(gt=0)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
NUM_SPECIAL_TOKENS = 3  # [CLS] and both [SEP]
# Measured at H = 96 and 384; at 768 it gives what published fine-tunings of BERT-base use (see
# DECISIONS.md).
RATE_EXPONENT = 1.5
# The formats that a kind of task reads.
FORMATS = {"classification": ("glue",), "multiple_choice": ("race", "choices"), "span": ("squad",)}


class KindOfTask(NamedTuple):
    """The module that has a kind of task as its class Kind, and the kind whose formats and default
    settings it has.
    """

    module: str
    like: str


KINDS = {kind: KindOfTask(f"albert_lab.tasks.{kind}", kind) for kind in FORMATS}
FULL_SCALE = "paper"  # whose settings are complete; other scales list only the differences
SPLITS = ("train", "dev")
# Columns of tables beside those of measures and settings: no task can have their names.
COLUMNS = (
    "average",
    "run",
    "row",
    "metric",
    "value",
    "n",
    "floor",
    "loss",
    "low",
    "high",
    "step",
    "task",
    "title",
    "parameters",
    "encoder_parameters",
    "train_flops_per_token",
    "steps",
    "tokens",
    "seeds",
    "state",
)


class TaskSettings(Section):
    """Settings of the fine-tuning on a task at one scale; those with a default are read by some
    kinds of task only.

    optimizer is torch's AdamW, or the release's Adam, which has no bias correction. learning_rate
    is for a model of rate_hidden_size, and is reduced for a wider one (see TaskConfig.fitted); if
    rate_hidden_size is null, it is used for every model. Lengths are in tokens. checkpoint_steps is
    the number of steps between evaluations on the dev set. train_examples and dev_examples are the
    sizes of subsamples. retries is the maximal number of repetitions of a fine-tuning that learnt
    nothing, each at half the learning rate. pooler says whether a fine-tuning starts from the
    pre-trained pooler or from new weights in it (classification, multiple choice; never new if the
    task starts from another one). question_length limits the question (span) or the question with
    its option (multiple choice). empty_windows is the share of the training windows without the
    answer that are kept (span).
    """

    optimizer: Literal["adamw", "adam-release"]
    learning_rate: float = Field(gt=0)
    rate_hidden_size: Positive | None
    batch_size: Positive
    # years of training; the paper's longest fine-tuning has 33,112
    steps: int = Field(gt=0, le=10**9)
    warmup_steps: int = Field(ge=0)
    checkpoint_steps: Positive
    dropout: Dropout
    classifier_dropout: Dropout
    max_sequence_length: int = Field(ge=8)
    train_examples: Positive | None
    dev_examples: Positive | None
    seeds: DistinctSeeds
    retries: int = Field(ge=0)
    pooler: Literal["pretrained", "new"] = "pretrained"
    question_length: Positive | None = None
    stride: Positive | None = None
    answer_length: Positive | None = None
    n_best: Positive | None = None
    beam_size: Positive | None = None
    empty_windows: float = Field(default=1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskSettings":
        if self.warmup_steps > self.steps:
            raise ValueError(f"warmup_steps={self.warmup_steps} is more than steps={self.steps}")
        room = self.max_sequence_length - (self.question_length or 0) - NUM_SPECIAL_TOKENS
        if room < (self.stride or 1):
            lengths = f"question_length={self.question_length}, stride={self.stride}"
            raise ValueError(
                f"max_sequence_length={self.max_sequence_length} has no room for {lengths}"
            )
        return self


class TaskConfig(Section):
    """One task: the content of its file in conf/task/ or of a user's file.

    kind is the module of this package that fine-tunes on it. data has a file or folder for train
    and dev, below the tasks folder; further ones are not read. split is the share of the texts of
    its train file that are dev, if there is no dev file. start_from is a task to fine-tune on
    first. folder is that of a user's file, which may have the data.
    """

    name: Name
    title: str = Field(min_length=1)
    kind: str
    source: str
    data: dict[str, str]
    split: float | None = Field(default=None, gt=0, lt=1, exclude_if=lambda share: share is None)
    format: Format
    start_from: str | None = Field(pattern=r"^[^./]+$")
    settings: dict[str, TaskSettings]
    folder: Path | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskConfig":
        like = KINDS[self.kind].like
        train, dev = (self.data.get(split) for split in SPLITS)
        if train is None or Path(train) == Path(dev or "") or (dev is None) == (self.split is None):
            raise ValueError(
                f"data={self.data}: train is needed, and dev in another file or instead of it "
                "`split: 0.2`"
            )
        check_known("format.name", self.format.name, FORMATS[like])
        defaults = _defaults()[like]["settings"][FULL_SCALE]
        for scale, settings in self.settings.items():
            check_known("settings", scale, groups()["scale"])
            for key, value in defaults.items():
                if value is not None and getattr(settings, key) is None:
                    raise ValueError(f"settings.{scale}.{key} must be given if kind is {like}")
        return self

    def at(self, scale: str) -> TaskSettings:
        """The settings of a scale; ConfigError if the task has none for it."""
        if scale not in self.settings:
            raise ConfigError(
                f"{self.name} has no settings for scale={scale} (it has: "
                f"{', '.join(self.settings)})"
            )
        return self.settings[scale]

    def fitted(self, config: RunConfig) -> TaskSettings:
        """The settings of a run's scale, with the learning rate for its width and lengths within
        its sequence length.

        If sequences must be shorter, question length and stride are reduced in the same proportion.
        A task that starts from another one keeps the pooler that was tuned there.

        Raises:
            ConfigError: no settings for the scale, or a pre-training length that is too short for
                the task.
        """
        settings = self.at(config.scale.name)
        values = settings.model_dump()
        longest = config.max_sequence_length
        if self.start_from is not None:
            values["pooler"] = "pretrained"
        if settings.rate_hidden_size is not None:
            narrowing = settings.rate_hidden_size / config.model.hidden_size
            values["learning_rate"] *= min(1, narrowing) ** RATE_EXPONENT
        full = settings.max_sequence_length
        for key in ("max_sequence_length", "question_length", "stride"):
            if values[key] is not None:
                values[key] = max(1, values[key] * min(full, longest) // full)
        try:
            return TaskSettings.model_validate(values)
        except ValidationError as error:
            raise ConfigError(
                f"max_sequence_length={longest} of the run is too short for {self.name}"
            ) from error

    def file(self, folder: Path, split: str) -> Path:
        """The path of train or dev: next to a user's file if it exists there, else below the tasks
        folder.
        """
        name = self.data["train" if self.split is not None else split]
        if self.folder and (self.folder / name).exists():
            return self.folder / name
        return folder / name

    def check_data(self, folder: Path, splits: Sequence[str] = SPLITS) -> None:
        """Raises MissingDataError if the file of one of the splits does not exist."""
        for split in splits:
            if not (file := self.file(folder, split)).exists():
                places = f"{file} (nor in {self.folder})" if self.folder else file
                raise MissingDataError(
                    f"{self.name}: no {split} data at {places}: see docs/data-and-tasks.md"
                )

    def read(self, folder: Path, split: str) -> tuple[list[Any], str]:
        """The examples of train or dev, in the class of its format, and the problems of others.

        Raises:
            MissingDataError: a file or folder of the task does not exist.
            ConfigError: the file or none of its examples can be used.
        """
        self.check_data(folder, [split])
        file = self.file(folder, split)
        examples, issues = self.format.read(file, split == "train")
        if self.split is not None:
            examples = [one for one in examples if split_of(one.together, self.split) == split]
        if not examples:
            raise ConfigError(
                f"{file}: no example of {split} can be used: {issues or 'it has none'}"
            )
        return examples, issues

    @property
    def main(self) -> tuple[str, ...]:
        """The scores whose mean is the headline score: of SQuAD F1 and EM (the paper's Avg), else
        the first.
        """
        return self.format.scores[: 2 if self.format.name == "squad" else 1]

    def main_score(self, scores: Mapping[str, float]) -> float:
        return mean_of(self.main, scores)


def mean_of(names: Sequence[str], scores: Mapping[str, float]) -> float:
    return sum(scores[name] for name in names) / len(names)


def task_names() -> list[str]:
    """The names of all tasks in conf/task/."""
    return sorted(file.stem for file in paths.conf_files("task/*.yaml"))


def load_task(name: str) -> TaskConfig:
    """A task by its name or by the path of a user's YAML file.

    Raises:
        ConfigError: unknown task, invalid YAML, or an invalid key or value; the message names file
            and key.
    """
    task = _read(name)
    if (start := load_start(task)) and start.start_from is not None:
        raise ConfigError(
            f"{name}: start_from={start.name} starts from {start.start_from}: name that task, or "
            "another"
        )
    return task


def load_start(task: TaskConfig) -> TaskConfig | None:
    """The task to fine-tune on first (start_from), which has a name and starts from no other; see
    load_task().
    """
    return None if task.start_from is None else _read(task.start_from)


def _read(name: str) -> TaskConfig:
    file = Path(name) if name.endswith(".yaml") else paths.conf_file(f"task/{name}.yaml")
    if not file.is_file():
        remedy = own_code.missing_option("kind", name, f"task/{name}.yaml")
        raise ConfigError(
            f"task {name} is unknown (allowed: {', '.join(task_names())}, or a .yaml file){remedy}"
        )
    return _load(file, file.stat().st_mtime_ns)


@paths.cache_until_use_conf  # a plan loads each task many times
def _load(file: Path, _changed: int) -> TaskConfig:
    from albert_lab.measures.catalog import labels

    plain = check(file, {"name": file.stem} | read_yaml(file), _TaskFile)
    if plain.kind not in KINDS:
        raise ConfigError(f"{file}: kind={plain.kind} is unknown (allowed: {', '.join(KINDS)})")
    name = plain.name
    taken = {*COLUMNS, *RunConfig.model_fields, *labels(), *task_names()}
    is_own = file != paths.conf_file(f"task/{file.name}")
    if is_own and (name in taken or name.endswith(("_loss", "_accuracy", "_probe"))):
        raise ConfigError(
            f"{file}: {name} names a score, a setting, a column or another task: name it otherwise"
        )
    # JSON: lists are allowed for tuples, and numbers stay strict.
    task = check(file, json.dumps(_filled(plain)).encode(), TaskConfig)
    return (
        task if file.is_relative_to(paths.CONF) else task.model_copy(update={"folder": file.parent})
    )


class _TaskFile(BaseModel, extra="allow"):
    """What the defaults of a task depend on; its other keys are checked with them."""

    name: Name
    kind: str
    format: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {}


@cache
def _defaults() -> dict[str, Any]:
    return read_yaml(paths.CONF / "task_defaults.yaml")


def _filled(content: _TaskFile) -> dict[str, Any]:
    """A task's content completed by defaults: the task's value, else the kind's, else that of all
    kinds.

    The default title is the name. Settings of a scale are the task's, else the kind's, else those
    of the full scale.
    """
    default = _defaults()[KINDS[content.kind].like]
    task = {"title": content.name} | _defaults()["every_kind"] | content.model_dump()
    task["format"] = {"name": default["format"]} | content.format
    own = content.settings
    full = default["settings"][FULL_SCALE] | own.get(FULL_SCALE, {})
    settings = {}
    for scale in dict.fromkeys([*default["settings"], *own]):
        of_scale = own.get(scale, {})
        # a given rate is used as it is
        unscaled = {"rate_hidden_size": None} if "learning_rate" in of_scale else {}
        settings[scale] = full | default["settings"].get(scale, {}) | unscaled | of_scale
    return task | {"settings": settings}
