"""The tasks that fill the downstream columns of a table, and checks of their data."""

from collections.abc import Iterable, Mapping, Sequence

from albert_lab import paths
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import Say
from albert_lab.tasks.task import TaskConfig, load_start, load_task, task_names


def choose_tasks(
    columns: Iterable[str], say: Say, names: Sequence[str] | None = None, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The task that fills each downstream column of a table: its name, or the user's file that load_task() takes.

    A column whose task has no data is left out, in one line. If names are given, only these tasks. own has the files
    of own tasks by column, which need their data.

    Raises:
        ConfigError: an unknown task, or two tasks with the same name.
        MissingDataError: a task that is named, or an own one, has no data.
    """
    if names is not None:
        asked = load_named(names)
        for task in asked.values():
            check_data(task)
        return dict(zip(asked, names, strict=True))
    chosen, lacking = {}, []
    for column in columns:
        if own and column in own:
            check_data(load_task(own[column]))
            chosen[column] = own[column]
        elif column in task_names():
            try:
                check_data(load_task(column))
                chosen[column] = column
            except MissingDataError:
                lacking.append(column)
    if lacking:
        families = dict.fromkeys(load_task(column).family for column in lacking)
        say(f"no files, left out: {', '.join(lacking)} (`albert-lab data fetch {next(iter(families))}`)")
    return chosen


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


def check_data(task: TaskConfig) -> None:
    """Check that a task, and each task that it starts from, has training and dev data.

    Raises:
        MissingDataError: a file or folder is missing.
    """
    task.check_data(paths.tasks_data())
    before = load_start(task)
    if before is not None:
        check_data(before)
