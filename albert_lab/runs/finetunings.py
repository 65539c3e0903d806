"""The fine-tunings of a run: the tasks of a table's columns, their state, and the training of what
is missing.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from albert_lab import own_code, paths
from albert_lab.config.schema import digest
from albert_lab.errors import FIXABLE, ConfigError, MissingDataError
from albert_lab.messages import Say, duration
from albert_lab.model.shape import EncoderShape
from albert_lab.runs.reported import FilledColumn
from albert_lab.runs.run import (
    FAILURE,
    TRACEBACK,
    Run,
    config_here,
    failure_in,
    held,
    same_training,
    use_threads,
)
from albert_lab.runs.states import find_run
from albert_lab.storage import link, replacing, write_atomically
from albert_lab.tasks.records import (
    FinetuningRecord,
    current,
    identity_of,
    record_file,
    weights_file,
)
from albert_lab.tasks.task import TaskConfig, load_start, load_task, task_names

if TYPE_CHECKING:  # it loads torch, which plans and reports do not need
    from albert_lab.tasks.model import InitialModel

# Fine-tuning seeds; None: those in each task's file for the scale.
Seeds = Sequence[int] | None
RANDOM_SEEDS = (0, 1, 2)


def choose_tasks(
    columns: Iterable[str], say: Say, names: Sequence[str] | None = None
) -> dict[str, str]:
    """The task that fills each downstream column of a table: its name, or the user's file that
    load_task() takes.

    A column whose task has no data is left out, in one line. If names are given, only these tasks.

    Raises:
        ConfigError: an unknown task, or two tasks with the same name.
        MissingDataError: a task that is named has no data.
    """
    if names is not None:
        return dict(zip(named_tasks(names), names, strict=True))
    known = task_names()
    chosen = {}
    lacking = []
    for column in columns:
        if column not in known:
            continue
        try:
            check_data(load_task(column))
            chosen[column] = column
        except MissingDataError:
            lacking.append(column)
    if lacking:
        say(
            f"no files, left out: {', '.join(lacking)} (docs/data-and-tasks.md says where to get "
            "them)"
        )
    return chosen


def named_tasks(names: Sequence[str]) -> dict[str, TaskConfig]:
    """Tasks given by name or file, by their names.

    Raises:
        ConfigError: an unknown task, or two tasks with the same name.
        MissingDataError: a task has no data.
    """
    task_of: dict[str, TaskConfig] = {}
    for task in map(load_task, names):
        if task_of.setdefault(task.name, task) is not task:
            raise ConfigError(f"two tasks are named {task.name}: rename the file of one of them")
        check_data(task)
    return task_of


def check_data(task: TaskConfig) -> None:
    """Raises MissingDataError if a task, or the task that it starts from, lacks training or dev
    data.
    """
    for needed in filter(None, (task, load_start(task))):
        needed.check_data(paths.tasks_data())


class RandomWeights(Run):
    """Random weights in the shape of a run: the baseline of its fine-tunings, which all runs of the
    shape share.
    """

    @cached_property
    def name(self) -> str:
        config = self.config
        corpus = self.config.corpus
        shape = (
            asdict(EncoderShape.from_config(config)),
            config.max_sequence_length,
            config.scale.name,
        )
        text = (
            self.fingerprints["tokenizer"],
            corpus.lower_case,
            corpus.strip_accents,
            corpus.language,
        )
        return f"random_{digest([shape, text, sorted(self.own_code.values())])}"


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
        return f"{self.task.name}, seed {self.seed}{', random weights' * self.is_random}"

    @property
    def current(self) -> FinetuningRecord | None:
        """Its record of exactly these settings and data; None if there is none."""
        start, task, seed = self
        return current(start.folder, start.name, start.config, task, seed, paths.tasks_data())

    @property
    def failure_file(self) -> Path:
        return record_file(self.start.folder, self.task.name, self.seed).with_suffix(f".{FAILURE}")


def wanted(
    run: Run, tasks: Iterable[str], seeds: Seeds = None, *, with_random: bool = False
) -> list[Finetuning]:
    """Every task with every fine-tuning seed: the given ones, or those of the run's scale.

    with_random: also RANDOM_SEEDS of random weights.
    """
    loaded = [load_task(task) for task in tasks]
    own = [
        Finetuning(run, task, seed)
        for task in loaded
        for seed in seeds or task.fitted(run.config).seeds
    ]
    random = RandomWeights(run.config, run.fingerprints, own_code=run.own_code)
    return own + [
        Finetuning(random, task, seed) for task in loaded for seed in RANDOM_SEEDS if with_random
    ]


def missing(wanted: Iterable[Finetuning]) -> list[Finetuning]:
    """Those without a record of exactly these settings and data, including failed ones."""
    return [item for item in wanted if item.current is None]


def failures(missing: Iterable[Finetuning]) -> dict[str, str]:
    """The reasons of those missing fine-tunings that failed when they were last tried, by name."""
    return {
        item.name: failure_in(item.failure_file) for item in missing if item.failure_file.exists()
    }


def _initial_model(run: Run, say: Say) -> "InitialModel":
    """A finished run as the start of fine-tunings; RandomWeights have no weights to load.

    Raises what config_here() raises, and for a finished run what last_weights() raises.
    """
    from albert_lab.data.vocabulary import find_or_train, load_tokenizer
    from albert_lab.tasks.model import InitialModel
    from albert_lab.training.checkpoint import last_weights

    config = config_here(run)
    find_or_train(config, say)
    weights = (
        None
        if isinstance(run, RandomWeights)
        else last_weights(run.folder / "checkpoint", run.name)
    )
    return InitialModel(run.name, config, load_tokenizer(config), weights, run.folder)


def train(todo: Sequence[Finetuning], say: Say, is_stopped: Callable[[], bool]) -> bool:
    """Train the missing fine-tunings of a finished run; False if stopped.

    If one fails, its reason is recorded and the others are trained. The caller holds the lock of
    the run.

    Raises:
        OSError: the disk is full: the others could not write either.
        filelock.Timeout: stopped while another process fine-tunes the same random weights.
    """
    from albert_lab.training.evaluate import StoppedError

    make = _maker(todo, say, is_stopped)
    for number, item in enumerate(todo, 1):
        say(f"fine-tuning {number} of {len(todo)}: {item.name}")
        item.failure_file.unlink(missing_ok=True)
        try:
            say(describe(make(item)))
        except StoppedError:
            return False
        except OSError:
            raise
        except Exception as error:
            own = own_code.suspected(error)
            say(f"{item.name}: FAILED: {own or error}")
            write_atomically(item.failure_file, f"{own or error}\n")
            if not isinstance(error, FIXABLE):
                write_atomically(item.start.folder / TRACEBACK, traceback.format_exc())
    return True


def _maker(
    todo: Sequence[Finetuning], say: Say, is_stopped: Callable[[], bool] = lambda: False
) -> Callable[[Finetuning], FinetuningRecord]:
    """A function that makes one of these fine-tunings if it is missing, and returns its record.

    Raises:
        StoppedError: it was stopped; filelock.Timeout, while it waited for the same random weights.
    """
    from albert_lab.tasks.finetune import finetune

    models: dict[str, InitialModel] = {}
    parents = {item.task.start_from for item in todo}  # other fine-tunings start from their weights

    def make(item: Finetuning) -> FinetuningRecord:
        start, task, seed = item
        other = None if item.is_random else same_training(start)
        if other:
            _take_over(item, other)
        if start.name not in models:
            models[start.name] = _initial_model(start, say)
        with held(start.folder, say, is_stopped) if item.is_random else nullcontext():
            return finetune(
                models[start.name],
                task,
                seed,
                data=paths.tasks_data(),
                say=say,
                is_stopped=is_stopped,
                keep_weights=task.name in parents,
            )

    return make


def _take_over(item: Finetuning, other: Run) -> None:
    """Take over a fine-tuning of another run with the same weights, and the one that it starts
    from; nothing if it is there, or the other run has none of these settings and data.
    """
    start, task, seed = item
    record = item._replace(start=other).current
    if item.current or record is None:
        return
    before = load_start(task)
    if before:
        _take_over(item._replace(task=before), other)
    weights = weights_file(other.folder, task.name, seed)
    if weights.exists():
        own_weights = weights_file(start.folder, task.name, seed)
        with replacing(own_weights) as partial:
            link(weights, partial)
    identity = identity_of(start.name, start.config, task, seed)
    record = record.model_copy(update={"run": start.name, "identity": identity})
    write_atomically(
        record_file(start.folder, task.name, seed), record.model_dump_json(indent=1) + "\n"
    )


def finetune_run(
    name: str, tasks: Sequence[str], seeds: Seeds, say: Say
) -> Iterator[FinetuningRecord]:
    """The fine-tunings of a finished run on tasks, all given by name or file, and then those of
    random weights of its shape; those that are missing are trained.

    Raises:
        ConfigError: an unknown or unfinished run, an unknown task, or one that cannot be used.
        MissingDataError: a task has no data.
    """
    run = find_run(name)
    named_tasks(tasks)  # before anything is trained
    todo = wanted(run, tasks, seeds, with_random=True)
    use_threads(run.folder, run.config)
    with held(run.folder, say):
        yield from map(_maker(todo, say), todo)


def describe(record: FinetuningRecord) -> str:
    """A fine-tuning in one line: its score, its floors, its seconds, and, but at smoke, the signs
    of no learning.
    """
    main = record.best.main
    floors = f"constant answers {main.floor:.1f}"
    if main.lexical_floor is not None:
        floors += f", bag of words {main.lexical_floor:.1f}"
    weights = ", random weights" if record.weights == "random" else ""
    line = (
        f"{record.title}, seed {record.seed}{weights}: {main.value:.1f} ({floors}) of {main.n:,} "
        f"examples, {duration(record.total_seconds)}"
    )
    if record.diverged and record.scale != "smoke":
        line += f"; DID NOT LEARN: {'; '.join(record.diverged)}"
    return line


def filled_columns(wanted: Iterable[Finetuning]) -> tuple[FilledColumn, ...]:
    """The downstream columns that fine-tunings fill, first those of random weights; tasks of which
    one is missing are left out.
    """
    columns: list[FilledColumn] = []
    random_first = sorted(wanted, key=attrgetter("is_random"), reverse=True)
    for (_, task), items in groupby(random_first, key=attrgetter("is_random", "task.name")):
        records = [item.current for item in items]
        finished = [record for record in records if record]
        if len(finished) == len(records):
            columns.append(
                FilledColumn(task=task, title=finished[0].title, finetunings=tuple(finished))
            )
    return tuple(columns)
