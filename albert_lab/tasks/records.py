"""The record of one fine-tuning: its file is written last and means that it is done; several seeds as medians."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pydantic import BaseModel, ConfigDict

from albert_lab.config.schema import RunConfig, digest
from albert_lab.errors import ConfigError
from albert_lab.storage import write_atomically
from albert_lab.tasks.task import TaskConfig, TaskSettings

FOLDER = "finetuning"
# Raise it with every change that moves numbers: older records are then made again.
FINETUNING_VERSION = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExampleSet(_Part):
    """The examples of a split: used, of how many usable ones in its files, what is wrong with some, and what was cut.

    fingerprint is of the used examples.
    """

    used: int
    available: int
    fingerprint: str
    issues: str
    counts: dict[str, int]


class Evaluation(_Part):
    """Scores on a split after so many steps; threshold is the no-answer threshold where the task has one."""

    step: int
    main: float
    scores: dict[str, float]
    threshold: float | None


class Attempt(_Part):
    """One training: its rate, its loss at the end, what a blind model would reach, and the signs of divergence."""

    learning_rate: float
    end_loss: float | None
    chance_loss: float
    diverged: tuple[str, ...]


class FinetuningRecord(_Part):
    """One fine-tuning. best is the best of all evaluations on dev, last that of the last step; never mix them.

    weights are pre-trained or random. other_splits has None where a split has no labels. baseline has the scores of
    answers that do not look at the example. threshold_from says on which examples a
    no-answer threshold was chosen. training_seconds leaves reading and evaluation out.
    """

    task: str
    title: str
    version: int
    identity: str
    run: str
    weights: str
    start_from: str | None
    seed: int
    scale: str
    settings: TaskSettings
    train: ExampleSet
    dev: ExampleSet
    best: Evaluation
    last: Evaluation
    evaluations: tuple[Evaluation, ...]
    other_splits: dict[str, Evaluation | None]
    baseline: dict[str, float]
    baseline_main: float
    threshold_from: str | None
    attempts: tuple[Attempt, ...]
    diverged: tuple[str, ...]
    training_seconds: float
    total_seconds: float
    examples_per_second: float
    tokens_per_second: float
    padding_share: float


@dataclass(frozen=True)
class Summary:
    """Several seeds of one task: the medians, and all values by seed."""

    best: float
    last: float
    best_values: dict[int, float]
    last_values: dict[int, float]


def summarize(records: Sequence[FinetuningRecord]) -> Summary:
    """Medians over the seeds of the main score (section 4.1 of the paper: median of five runs)."""
    best = {record.seed: record.best.main for record in records}
    last = {record.seed: record.last.main for record in records}
    return Summary(median(best.values()), median(last.values()), best, last)


def identity_of(run: str, config: RunConfig, task: TaskConfig, seed: int) -> str:
    """What a fine-tuning's numbers come from, in short: run, task, settings and seed.

    Raises:
        ConfigError: the task has no settings for the run's scale, or needs longer sequences.
    """
    content = task.model_dump(mode="json", exclude={"settings", "hub", "note", "official_examples"})
    return digest([FINETUNING_VERSION, run, seed, content, task.fitted(config).model_dump()])


def record_file(folder: Path, task: str, seed: int) -> Path:
    """Where the record of a fine-tuning is, under the folder of its run."""
    return folder / FOLDER / f"{task}-seed{seed}.json"


def output_folder(folder: Path, task: str, seed: int) -> Path:
    """Where predictions, scores and weights of a fine-tuning are, under the folder of its run."""
    return record_file(folder, task, seed).with_suffix("")


def read_record(folder: Path, task: str, seed: int) -> FinetuningRecord | None:
    """The record of a fine-tuning; None where it is not finished.

    Raises:
        ConfigError: a file that is no record.
    """
    file = record_file(folder, task, seed)
    if not file.exists():
        return None
    try:
        return FinetuningRecord.model_validate_json(file.read_text())
    except ValueError as error:
        raise ConfigError(f"{file} is not a record of a fine-tuning: {error}") from error


def write_record(folder: Path, record: FinetuningRecord) -> None:
    """Writes a record under the folder of its run, whole or not at all."""
    write_atomically(record_file(folder, record.task, record.seed), record.model_dump_json(indent=2) + "\n")
