"""The fine-tunings of a run: their state, and the training of those that are missing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel

from albert_lab import files, own_code, paths
from albert_lab.config.schema import digest
from albert_lab.errors import FIXABLE, WriteError
from albert_lab.messages import Say, duration
from albert_lab.model.shape import EncoderShape
from albert_lab.runs.reported import FilledColumn, filled_column
from albert_lab.runs.run import Run, config_here, locked
from albert_lab.storage import write_atomically
from albert_lab.tasks.records import (
    WEIGHTS,
    FinetuningRecord,
    has_same_data,
    identity_of,
    output_folder,
    read_record,
    record_file,
)
from albert_lab.tasks.task import TaskConfig, load_start, load_task

if TYPE_CHECKING:  # it loads torch, which plans and reports do not need
    from albert_lab.tasks.model import InitialModel

FAILURE = "failure.json"


class Failure(BaseModel):
    """A recorded failure of a run or a fine-tuning. If the user can fix it, it is retried without --retry-failed."""

    error: str
    fixable: bool = False


# Fine-tuning seeds; None: those in each task's file for the scale.
Seeds = Sequence[int] | None
RANDOM_SEEDS = (0, 1, 2)


class RandomWeights(Run):
    """Random weights in the shape of a run: the baseline of its fine-tunings, which all runs of the shape share."""

    @cached_property
    def name(self) -> str:
        shape = asdict(EncoderShape.from_config(self.config))
        tokenizer = self.fingerprints["tokenizer"]
        return f"random_{digest([shape, tokenizer, self.config.scale.name, sorted(self.own_code.values())])}"


class Finetuning(NamedTuple):
    """A fine-tuning of a run, or of random weights, that is wanted."""

    start: Run
    task: TaskConfig
    seed: int

    @property
    def is_random(self) -> bool:
        return isinstance(self.start, RandomWeights)

    @property
    def name(self) -> str:
        return self.in_words(self.task.name)

    def in_words(self, task: str) -> str:
        return f"{task}, seed {self.seed}{', random weights' if self.is_random else ''}"

    @property
    def current(self) -> FinetuningRecord | None:
        """Its record of exactly these settings and data; None if there is none."""
        record = self.record_of_settings
        is_current = record and has_same_data(record, self.task, self.start.folder, paths.tasks_data())
        return record if is_current else None

    @property
    def record_of_settings(self) -> FinetuningRecord | None:
        """The record of exactly these settings, even if its data have changed; None if there is none."""
        start, task, seed = self
        record = read_record(start.folder, task.name, seed)
        return record if record and record.identity == identity_of(start.name, start.config, task, seed) else None

    @property
    def failure_file(self) -> Path:
        return record_file(self.start.folder, self.task.name, self.seed).with_suffix(f".{FAILURE}")

    @property
    def failure(self) -> Failure | None:
        file = self.failure_file
        return files.read_json(file, Failure, "--retry-failed forgets it") if file.exists() else None


def random_weights(run: Run) -> RandomWeights:
    return RandomWeights(run.config, run.fingerprints, own_code=run.own_code)


def wanted(run: Run, tasks: Iterable[str], seeds: Seeds = None, *, with_random: bool = False) -> list[Finetuning]:
    """Every task with every fine-tuning seed: the given ones, or those of the run's scale.

    with_random: also RANDOM_SEEDS of random weights.
    """
    loaded = [load_task(task) for task in tasks]
    own = [Finetuning(run, task, seed) for task in loaded for seed in seeds or task.fitted(run.config).seeds]
    if not with_random:
        return own
    return own + [Finetuning(random_weights(run), task, seed) for task in loaded for seed in RANDOM_SEEDS]


def missing(run: Run, tasks: Iterable[str], seeds: Seeds = None, *, with_random: bool = False) -> list[Finetuning]:
    """The fine-tunings without a record of exactly these settings and data, including failed ones."""
    return [item for item in wanted(run, tasks, seeds, with_random=with_random) if item.current is None]


def with_starts(missing: Iterable[Finetuning]) -> list[Finetuning]:
    """Missing fine-tunings and those that are made for them, since they start from weights that are not there."""
    needed = {(item.start.name, item.task.name, item.seed): item for item in missing}
    for item in [*needed.values()]:
        before = _before(item)
        while before and not (before.current and _weights(before).exists()):
            needed.setdefault((before.start.name, before.task.name, before.seed), before)
            before = _before(before)
    return [*needed.values()]


def _before(item: Finetuning) -> Finetuning | None:
    task = load_start(item.task)
    return item._replace(task=task) if task else None


def _weights(item: Finetuning) -> Path:
    return output_folder(item.start.folder, item.task.name, item.seed) / WEIGHTS


def failures(missing: Iterable[Finetuning]) -> dict[str, str]:
    """The reasons of those missing fine-tunings that failed, by name.

    Raises:
        DamagedFileError: the file of a failure cannot be read.
    """
    return {item.name: failure.error for item in missing if (failure := item.failure)}


def forget_failures(missing: Iterable[Finetuning], *, fixable_only: bool = False) -> None:
    """Reset failed fine-tunings, so that they run again: all, or those whose errors the user can fix."""
    for item in missing:
        if not fixable_only or ((failure := item.failure) and failure.fixable):
            item.failure_file.unlink(missing_ok=True)


def start_of(run: Run, say: Say) -> "InitialModel":
    """A finished run, or random weights, as the start of fine-tunings.

    Raises:
        MissingDataError: its weights were removed.
        DamagedFileError: they are damaged.
    """
    from albert_lab.data.vocabulary import find_or_train, load_tokenizer
    from albert_lab.tasks.model import InitialModel
    from albert_lab.training.checkpoint import last_weights

    own_code.check(run.own_code, run.name)
    config = config_here(run)
    find_or_train(config, say)
    tokenizer = load_tokenizer(config)
    weights = None if isinstance(run, RandomWeights) else last_weights(run.folder / "checkpoint", run.name)
    return InitialModel(run.name, config, tokenizer, weights, run.folder)


def train_missing(
    run: Run,
    tasks: Iterable[str],
    say: Say,
    is_stopped: Callable[[], bool],
    seeds: Seeds = None,
    show: Callable[[str, int, int], None] = lambda _title, _done, _total: None,
    *,
    with_random: bool = False,
) -> bool:
    """Train the missing fine-tunings of a finished run, except those that failed before; False if stopped.

    If one fails, its reason is recorded and the others are trained. Before each, show is called with its title, the
    number of finished fine-tunings and their total. The caller holds the lock of the run.

    Raises:
        filelock.Timeout: stopped while another process fine-tunes the same random weights.
    """
    todo = [item for item in missing(run, tasks, seeds, with_random=with_random) if not item.failure]
    if not todo:
        return True
    from albert_lab.tasks.finetune import finetune

    start_by_name: dict[str, InitialModel] = {}
    # Fine-tuned once; the others start from its weights.
    starts = {before.name for item in todo if (before := load_start(item.task))}
    for done, item in enumerate(todo):
        title = item.in_words(item.task.title)
        show(title, done, len(todo))
        if item.start.name not in start_by_name:
            start_by_name[item.start.name] = start_of(item.start, say)
        try:
            with locked(item.start.folder, say, is_stopped) if item.is_random else nullcontext():
                record = finetune(
                    start_by_name[item.start.name],
                    item.task,
                    item.seed,
                    data=paths.tasks_data(),
                    say=say,
                    is_stopped=is_stopped,
                    keep_weights=item.task.name in starts,
                )
        except WriteError:  # the others could not write either
            raise
        except (*FIXABLE, RuntimeError) as error:
            say(f"{title}: FAILED: {error}")
            item.failure_file.parent.mkdir(parents=True, exist_ok=True)
            failure = Failure(error=str(error), fixable=isinstance(error, FIXABLE))
            write_atomically(item.failure_file, failure.model_dump_json() + "\n")
            continue
        if record is None:
            return False
        say(describe(record))
    return True


def describe(record: FinetuningRecord) -> str:
    """A fine-tuning in one line: its score, its floors, its seconds, and the signs that it did not learn."""
    main = record.best.main
    words = "" if main.lexical_floor is None else f", bag of words {main.lexical_floor:.1f}"
    weights = ", random weights" if record.weights == "random" else ""
    signs = f"; DID NOT LEARN: {'; '.join(record.diverged)}" if record.diverged else ""
    return (
        f"{record.title}, seed {record.seed}{weights}: {main.value:.1f} (constant answers {main.floor:.1f}{words})"
        f" of {main.n:,} examples, {duration(record.total_seconds)}{signs}"
    )


def finished(run: Run, name: str, seeds: Seeds = None) -> list[FinetuningRecord]:
    """The records of a task by seed; empty if one of its seeds is missing."""
    records = [item.current for item in wanted(run, [name], seeds)]
    return [record for record in records if record is not None] if all(records) else []


def filled_columns(
    run: Run, chosen: Mapping[str, str], seeds: Seeds = None, *, with_random: bool = False
) -> tuple[FilledColumn, ...]:
    """The downstream columns of a run with their fine-tunings; unfinished tasks are left out.

    with_random: after those of random weights of its shape.
    """
    baseline = filled_columns(random_weights(run), chosen, RANDOM_SEEDS) if with_random else ()
    return (
        *baseline,
        *(
            filled_column(column, load_task(name), records)
            for column, name in chosen.items()
            if (records := finished(run, name, seeds))
        ),
    )
