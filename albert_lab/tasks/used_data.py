"""Whether today's files of a task still have the examples of a record, without reading them more than once."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from albert_lab.config.schema import digest
from albert_lab.data.fingerprint import digest_path, digests
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.examples import subsample
from albert_lab.tasks.records import FinetuningRecord, fingerprint_of, read_record
from albert_lab.tasks.task import TaskConfig, load_start


def has_same_data(record: FinetuningRecord, task: TaskConfig, folder: Path, data: Path) -> bool:
    """Whether the files of a task still have the examples of a record; those of the task that it started from, too.

    A file that is missing shows no change.

    Args:
        folder: Of the run, with its records.
        data: The tasks folder.
    """
    sizes = {"train": record.settings.train_examples, "dev": record.settings.dev_examples}
    for split, size in sizes.items():
        today = _remembered(task, data, split, f"of {size}", lambda of, size=size: fingerprint_of(subsample(of, size)))
        if today not in (None, getattr(record, split).fingerprint):
            return False
    before = load_start(task)
    first = read_record(folder, before.name, record.seed) if before else None
    return before is None or first is None or has_same_data(first, before, folder, data)


def count_examples(task: TaskConfig, data: Path, split: str) -> int:
    """The number of examples in the file of a split; 0 if it is missing or cannot be used."""
    return int(_remembered(task, data, split, "count", lambda examples: str(len(examples))) or 0)


def _remembered(
    task: TaskConfig, data: Path, split: str, what: str, take: Callable[[Sequence[Any]], str]
) -> str | None:
    """What `take` makes of the examples of today's file: None if it is missing, empty if it cannot be used."""
    file = task.file(data, split)
    if not (file.is_dir() or file.is_file()):
        return None
    own = [task.split] if task.split else []
    key = digest(["examples", task.format.model_dump(mode="json"), split, what, digest_path(file), *own])
    if key not in digests:
        try:
            digests[key] = take(task.read(data, split)[0])
        except (ConfigError, MissingDataError):
            return ""
    return digests[key]
