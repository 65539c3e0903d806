"""The examples that a fine-tuning uses: a fixed subsample, and whether today's files still have those of a record."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_lab.config.schema import digest
from albert_lab.data.fingerprint import digest_path, digests, remember_fingerprints
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.records import FinetuningRecord, fingerprint_of, read_record
from albert_lab.tasks.task import TaskConfig, load_start

# The choice of examples does not depend on the seed of a fine-tuning, so that seeds differ only by chance.
_SUBSAMPLE_SEED = 2020


def subsample(examples: Sequence[Any], size: int | None) -> list[Any]:
    """A fixed subsample of `size` examples, in order; all examples if size is None."""
    if size is None or size >= len(examples):
        return list(examples)
    rng = np.random.Generator(np.random.Philox(key=_SUBSAMPLE_SEED))
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:size])]


def has_same_data(record: FinetuningRecord, task: TaskConfig, folder: Path, data: Path) -> bool:
    """Whether the files of a task still have the examples of a record; those of the task that it started from, too.

    A file that is missing shows no change.

    Args:
        folder: Of the run, with its records.
        data: The tasks folder.
    """
    sizes = {"train": record.settings.train_examples, "dev": record.settings.dev_examples}
    for split, size in sizes.items():
        if _fingerprint(task, data, split, size) not in (None, getattr(record, split).fingerprint):
            return False
    before = load_start(task)
    first = read_record(folder, before.name, record.seed) if before else None
    return before is None or first is None or has_same_data(first, before, folder, data)


def remember_data(record: FinetuningRecord, task: TaskConfig, folder: Path, data: Path) -> None:
    """Looks at the files of a new record once, so that no later process has to read them again to compare them."""
    has_same_data(record, task, folder, data)
    remember_fingerprints()


def count_examples(task: TaskConfig, data: Path, split: str) -> int:
    """The number of examples in the file of a split; 0 if it is missing or cannot be used."""
    return int(_remembered(task, data, split, "count", lambda examples: str(len(examples))) or 0)


def _fingerprint(task: TaskConfig, data: Path, split: str, size: int | None) -> str | None:
    """What ExampleSet calls fingerprint, for today's file: None if it is missing, empty if it cannot be used."""
    return _remembered(task, data, split, f"of {size}", lambda examples: fingerprint_of(subsample(examples, size)))


def _remembered(task: TaskConfig, data: Path, split: str, what: str, take: Callable[[list[Any]], str]) -> str | None:
    file = task.file(data, split)
    if not (file.is_dir() or file.is_file()):
        return None
    own = [task.split] if task.split else []
    key = digest(["examples", task.format.model_dump(mode="json"), split, what, digest_path(file), *own])
    if key not in digests:
        try:
            examples, _ = task.read(data, split)
        except (ConfigError, MissingDataError):
            return ""
        digests[key] = take(examples)
    return digests[key]
