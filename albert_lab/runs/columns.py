"""The tasks that fill the downstream columns of a table, and checks of their data."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from albert_lab import paths
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.messages import Say, quiet
from albert_lab.tasks.corpus_tasks import STANDS_FOR, find, find_or_make, find_substitute
from albert_lab.tasks.task import TaskConfig, load_start, load_task, task_names


def choose_tasks(
    columns: Iterable[str],
    config: RunConfig,
    names: Sequence[str] | None = None,
    own: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The task that fills each downstream column of a table: its name, or the user's file that load_task() takes.

    The task itself if its data is available or made of the corpus, else the one that the corpus provides in its place,
    else none. If names are given, only these tasks. own has the files of own tasks by column, which need their data.

    Raises:
        ConfigError: an unknown task, or two tasks with the same name.
        MissingDataError: a task that is named, or an own one, has no data.
    """
    if names is None:
        own = own or {}
        task_of: dict[str, str | None] = {}
        for column in columns:
            if column in own:
                check_data(load_task(own[column]))
                task_of[column] = own[column]
            elif column in task_names():
                task_of[column] = column if _has_data(load_task(column)) else find_substitute(column, config.corpus)
        return {column: name for column, name in task_of.items() if name}
    asked = load_named(names)
    for task in asked.values():
        check_data(task)
    return dict(zip(asked, names, strict=True))


def load_named(names: Sequence[str], overrides: Sequence[str] = ()) -> dict[str, TaskConfig]:
    """Tasks given by name or file, by their names.

    Raises:
        ConfigError: an unknown task, or two tasks with the same name.
    """
    task_of: dict[str, TaskConfig] = {}
    for task in (load_task(name, overrides) for name in names):
        if task.name in task_of:
            raise ConfigError(f"two tasks are named {task.name}: rename the file of one of them")
        task_of[task.name] = task
    return task_of


def check_data(task: TaskConfig, splits: Sequence[str] = ()) -> None:
    """Check that a task, and each task that it starts from, has training and dev data and the given further splits.

    Raises:
        MissingDataError: a file or folder is missing.
        ConfigError: the task has no such split.
    """
    if not task.is_made_of_corpus:
        task.check_data(paths.tasks_data(), ("train", "dev", *splits))
    before = load_start(task)
    if before is not None:
        check_data(before)


def _has_data(task: TaskConfig) -> bool:
    return task.is_made_of_corpus or all(task.file(paths.tasks_data(), split).exists() for split in ("train", "dev"))


def prepare_tasks(chosen: Mapping[str, str], config: RunConfig, say: Say) -> dict[str, str]:
    """The chosen tasks without those that the corpus cannot provide; makes the data of its tasks if it is missing.

    Raises:
        MissingDataError: the text of the corpus is missing.
    """
    if not _is_any_made_of_corpus(chosen):
        return dict(chosen)
    try:
        folder = find_or_make(config, say)
    except ConfigError as error:
        say(f"no downstream task is made of the corpus: {error}")
        return {column: name for column, name in chosen.items() if not load_task(name).is_made_of_corpus}
    return _provided(chosen, folder, say)


def find_tasks(chosen: Mapping[str, str], config: RunConfig) -> dict[str, str]:
    """The chosen tasks as prepare_tasks() returns them, as far as it is known without making anything.

    All of them if the data of the corpus's tasks is not made yet.

    Raises:
        MissingDataError: the text of the corpus is missing.
    """
    if not _is_any_made_of_corpus(chosen) or not (folder := find(config.corpus)).is_dir():
        return dict(chosen)
    return _provided(chosen, folder, quiet)


def _is_any_made_of_corpus(chosen: Mapping[str, str]) -> bool:
    return any(load_task(name).is_made_of_corpus for name in chosen.values())


def _provided(chosen: Mapping[str, str], folder: Path, say: Say) -> dict[str, str]:
    """The task of each column for which the folder has data: the chosen one, or another one that can replace it."""
    task_of = {}
    for column, task in ((column, load_task(name)) for column, name in chosen.items()):
        others = [name for name, official in STANDS_FOR.items() if official == column != task.name]
        provided = [name for name in (chosen[column], *others) if _is_provided(load_task(name), folder)]
        if provided:
            task_of[column] = provided[0]
        if chosen[column] not in provided:
            instead = f"{load_task(provided[0]).title} takes its place" if provided else "its column stays empty"
            say(f"{task.title}: the corpus does not provide this task; {instead}")
    return task_of


def _is_provided(task: TaskConfig, folder: Path) -> bool:
    return not task.is_made_of_corpus or task.file(folder, "train").exists()
