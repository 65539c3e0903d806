"""The record of one fine-tuning, written last, so that its file marks the end; and medians over
several seeds.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pydantic import Field

from albert_lab import files
from albert_lab.config.schema import RunConfig, digest
from albert_lab.data.files import digest_path
from albert_lab.files import Record, Signed
from albert_lab.score import Documents, Score
from albert_lab.tasks.task import KINDS, SPLITS, TaskConfig, TaskSettings, load_start

FOLDER = "finetuning"
# Increment it with every change of results: older fine-tunings are then repeated.
FINETUNING_VERSION = 2
REMEDY = (
    "remove finetuning/TASK-seedN.json of the run, and the same command makes the fine-tuning again"
)


class ExampleSet(Record, extra="ignore"):
    """The examples of a split: the number of used ones, and problems in its files.

    fingerprint identifies the used examples, and digest their file or folder (empty in older
    records). cut is how many of the used examples have a text that was cut to the settings'
    lengths; None in older records.
    """

    used: int
    fingerprint: str
    digest: str = ""
    issues: str
    cut: int | None = Field(default=None, ge=0)


class Evaluation(Record):
    """Scores on a split after `step` steps: the task's main score, and one score per metric.

    threshold is the no-answer threshold, if the task has one: it makes the F1 of the scored
    examples highest.
    """

    step: int
    main: Score
    scores: dict[str, Score]
    threshold: float | None


class Attempt(Record):
    """One training: learning rate, final loss, chance loss, and signs of divergence."""

    learning_rate: float
    end_loss: float | None
    chance_loss: float
    diverged: tuple[str, ...]


class FinetuningRecord(Signed, extra="ignore"):
    """One fine-tuning. best is the best of all evaluations on dev, last that after the last step;
    never mix them.

    identity is that of its inputs, see identity_of(). weights are pre-trained or random. documents
    are sums of the main score of best by blocks of dev examples (of a correlation,
    metrics.jackknife). Older records have more keys.
    """

    SIGNED = frozenset({"best", "last", "documents"})

    task: str
    title: str
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
    documents: Documents | None
    attempts: tuple[Attempt, ...]
    diverged: tuple[str, ...]
    total_seconds: float


def summarize(records: Sequence[FinetuningRecord]) -> Score:
    """The median over seeds of the best main score (section 4.1 of the paper), without an interval.
    Number of examples and floors are those of the first record: all have the same ones.
    """
    changed = {
        "value": median(record.best.main.value for record in records),
        # These are those of one fine-tuning.
        "low": None,
        "high": None,
        "loss": None,
    }
    return records[0].best.main.model_copy(update=changed)


def identity_of(run: str, config: RunConfig, task: TaskConfig, seed: int) -> str:
    """Short identifier of a fine-tuning's inputs, besides its data: run, task, settings, seed, own
    code.

    Raises:
        ConfigError: the task has no settings for the run's scale, or needs longer sequences.
    """
    content = task.model_dump(mode="json", exclude={"settings"})
    inputs = [FINETUNING_VERSION, run, seed, content, task.fitted(config).model_dump()]
    module = KINDS[task.kind].module
    if not module.startswith("albert_lab."):  # the name of own code has the digest of its file
        inputs.append(module)
    return digest(inputs)


def record_file(folder: Path, task: str, seed: int) -> Path:
    """The path of a fine-tuning's record, below the folder of its run."""
    return folder / FOLDER / f"{task}-seed{seed}.json"


def weights_file(folder: Path, task: str, seed: int) -> Path:
    """The path of a fine-tuning's weights, if they are kept for those that start from them; they
    have a folder of their own.
    """
    return record_file(folder, task, seed).with_suffix("") / "model.safetensors"


def read_record(folder: Path, task: str, seed: int) -> FinetuningRecord | None:
    """The record of a fine-tuning; None if it is not finished, DamagedFileError if the file is not
    a record.
    """
    file = record_file(folder, task, seed)
    return files.read_json(file, FinetuningRecord, REMEDY) if file.exists() else None


def remove_record(folder: Path, task: str, seed: int) -> None:
    """Removes a fine-tuning, and those that started from its weights."""
    for file in (folder / FOLDER).glob(f"*-seed{seed}.json"):
        record = files.read_json(file, FinetuningRecord, REMEDY)
        if task in (record.task, record.start_from):
            file.unlink()
            shutil.rmtree(weights_file(folder, record.task, seed).parent, ignore_errors=True)


def current(
    folder: Path, run: str, config: RunConfig, task: TaskConfig, seed: int, data: Path
) -> FinetuningRecord | None:
    """The record of a fine-tuning, and of the one that it starts from, of exactly these settings
    and data; else None.

    A file of data that is missing shows no change. folder is that of the run, with its records;
    data the tasks folder.
    """
    record = read_record(folder, task.name, seed)
    if record is None or record.identity != identity_of(run, config, task, seed):
        return None
    inputs = (record.task, record.run, record.seed, record.settings)
    if inputs != (task.name, run, seed, task.fitted(config)):  # the file was edited
        return None
    for split in SPLITS:
        file = task.file(data, split)
        if file.exists() and digest_path(file) != getattr(record, split).digest:
            return None
    start = load_start(task)
    if start is not None and current(folder, run, config, start, seed, data) is None:
        return None
    return record
