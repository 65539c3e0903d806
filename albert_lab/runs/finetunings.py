"""The fine-tunings of a run: their state, and the training of those that are missing."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from albert_lab import files, own_code, paths
from albert_lab.config.schema import RunConfig
from albert_lab.errors import FIXABLE, WriteError
from albert_lab.messages import Say
from albert_lab.runs.reported import FilledColumn, filled_column
from albert_lab.runs.run import Run, config_here
from albert_lab.storage import write_atomically
from albert_lab.tasks.records import (
    FOLDER,
    WEIGHTS,
    FinetuningRecord,
    identity_of,
    output_folder,
    read_record,
    record_file,
)
from albert_lab.tasks.task import TaskConfig, load_start, load_task
from albert_lab.tasks.used_data import has_same_data
from albert_lab.units import duration

if TYPE_CHECKING:  # it loads torch, which plans and reports do not need
    from albert_lab.tasks.model import InitialModel

FAILURE = "failure.json"


class Failure(BaseModel):
    """A recorded failure of a run or a fine-tuning. If the user can fix it, it is retried without --retry-failed."""

    error: str
    fixable: bool = False


# Fine-tuning seeds; None: those in each task's file for the scale.
Seeds = Sequence[int] | None


def wanted(config: RunConfig, tasks: Iterable[str], seeds: Seeds = None) -> list[tuple[TaskConfig, int]]:
    """Every task with every fine-tuning seed: the given ones, or those of the run's scale."""
    return [(task, seed) for task in map(load_task, tasks) for seed in seeds or task.fitted(config).seeds]


def missing(run: Run, tasks: Iterable[str], seeds: Seeds = None) -> list[tuple[TaskConfig, int]]:
    """The fine-tunings without a record of exactly these settings and data, including failed ones."""
    return [(task, seed) for task, seed in wanted(run.config, tasks, seeds) if _current(run, task, seed) is None]


def with_starts(run: Run, missing: Iterable[tuple[TaskConfig, int]]) -> list[tuple[TaskConfig, int]]:
    """Missing fine-tunings and those that are made for them, since they start from weights that are not there."""
    needed = {(task.name, seed): (task, seed) for task, seed in missing}
    for task, seed in [*needed.values()]:
        before = load_start(task)
        while before and not (_current(run, before, seed) and _weights(run, before, seed).exists()):
            needed.setdefault((before.name, seed), (before, seed))
            before = load_start(before)
    return [*needed.values()]


def _weights(run: Run, task: TaskConfig, seed: int) -> Path:
    return output_folder(run.folder, task.name, seed) / WEIGHTS


def record_of_settings(run: Run, task: TaskConfig, seed: int) -> FinetuningRecord | None:
    """The record of exactly these settings, even if its data have changed; None if there is none."""
    record = read_record(run.folder, task.name, seed)
    is_of_them = record is not None and record.identity == identity_of(run.name, run.config, task, seed)
    return record if is_of_them else None


def _current(run: Run, task: TaskConfig, seed: int) -> FinetuningRecord | None:
    record = record_of_settings(run, task, seed)
    return record if record and has_same_data(record, task, run.folder, paths.tasks_data()) else None


def has_failed(run: Run, task: TaskConfig, seed: int) -> bool:
    return _failure_file(run.folder, task.name, seed).exists()


def failures(run: Run, missing: Iterable[tuple[TaskConfig, int]]) -> dict[str, str]:
    """The reasons of those of the missing fine-tunings that failed, by task and seed."""
    return {
        f"{task.name}, seed {seed}": _read_failure(_failure_file(run.folder, task.name, seed)).error
        for task, seed in missing
        if has_failed(run, task, seed)
    }


def forget_failures(folder: Path, *, fixable_only: bool = False) -> None:
    """Reset failed fine-tunings, so that they run again: all, or those whose errors the user can fix."""
    for file in (folder / FOLDER).glob(f"*.{FAILURE}"):
        if not fixable_only or _read_failure(file).fixable:
            file.unlink()


def _read_failure(file: Path) -> Failure:
    return files.read_json(file, Failure, "--retry-failed forgets it")


def _failure_file(folder: Path, task: str, seed: int) -> Path:
    return record_file(folder, task, seed).with_suffix(f".{FAILURE}")


def start_of(run: Run, say: Say, *, is_random: bool = False) -> "InitialModel":
    """A finished run as the start of fine-tunings, or random weights of its shape, whose records are kept separately.

    Raises:
        MissingDataError: its weights were removed.
        DamagedFileError: they are damaged.
    """
    from albert_lab.data.tokenizer.cache import find_or_train, load_tokenizer
    from albert_lab.tasks.model import InitialModel
    from albert_lab.training.checkpoint import last_weights

    own_code.check(run.own_code, run.name)
    config = config_here(run)
    find_or_train(config, say)
    tokenizer = load_tokenizer(config)
    if is_random:
        return InitialModel(f"{run.name}/random", config, tokenizer, None, run.folder / "random")
    weights = last_weights(run.folder / "checkpoint", run.name)
    return InitialModel(run.name, config, tokenizer, weights, run.folder)


def train_missing(
    run: Run,
    tasks: Iterable[str],
    say: Say,
    is_stopped: Callable[[], bool],
    seeds: Seeds = None,
    show: Callable[[str, int, int], None] = lambda _title, _done, _total: None,
) -> bool:
    """Train the missing fine-tunings of a finished run, except those that failed before; False if stopped.

    If one fails, its reason is recorded and the others are trained. Before each, show is called with its title, the
    number of finished fine-tunings and their total.
    """
    todo = [(task, seed) for task, seed in missing(run, tasks, seeds) if not has_failed(run, task, seed)]
    if not todo:
        return True
    from albert_lab.tasks.finetune import finetune

    start = start_of(run, say)
    # Fine-tuned once; the others start from its weights.
    starts = {before.name for task, _ in todo if (before := load_start(task))}
    for done, (task, seed) in enumerate(todo):
        show(f"{task.title}, seed {seed}", done, len(todo))
        try:
            data = paths.tasks_data()
            is_start = task.name in starts
            record = finetune(start, task, seed, data=data, say=say, is_stopped=is_stopped, keep_weights=is_start)
        except WriteError:  # the others could not write either
            raise
        except (*FIXABLE, RuntimeError) as error:
            say(f"{task.title}, seed {seed}: FAILED: {error}")
            file = _failure_file(run.folder, task.name, seed)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps({"error": str(error), "fixable": isinstance(error, FIXABLE)}) + "\n")
            continue
        if record is None:
            return False
        say(describe(record))
    return True


def describe(record: FinetuningRecord) -> str:
    """A fine-tuning in one line: its score, its floors, its seconds, and the signs that it did not learn."""
    main = record.best.main
    words = "" if main.lexical_floor is None else f", bag of words {main.lexical_floor:.1f}"
    signs = f"; DID NOT LEARN: {'; '.join(record.diverged)}" if record.diverged else ""
    return (
        f"{record.title}, seed {record.seed}: {main.value:.1f} (constant answers {main.floor:.1f}{words})"
        f" of {main.n:,} examples, {duration(record.total_seconds)}{signs}"
    )


def finished(run: Run, name: str, seeds: Seeds = None) -> list[FinetuningRecord]:
    """The records of a task by seed; empty if one of its seeds is missing."""
    records = [_current(run, task, seed) for task, seed in wanted(run.config, [name], seeds)]
    return [record for record in records if record is not None] if all(records) else []


def filled_columns(run: Run, chosen: Mapping[str, str], seeds: Seeds = None) -> tuple[FilledColumn, ...]:
    """The downstream columns of a run with their fine-tunings; unfinished tasks are left out."""
    return tuple(
        filled_column(column, load_task(name), records)
        for column, name in chosen.items()
        if (records := finished(run, name, seeds))
    )
