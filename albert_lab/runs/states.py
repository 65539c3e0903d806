"""The state of a run, and the jobs of Slurm that train runs."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.runs.run import FAILURE, MACHINE, RECORD, Run, find, is_locked, is_trained, read

State = Literal[
    "done", "imported", "failed", "running", "trained", "unscored", "stopped", "missing"
]
PRETRAINED = ("done", "imported")  # states in which the weights are final
JOB = "slurm-job"  # the file with the number of a run's job


def state(folder: Path) -> State:
    """The state of a pre-training: done, imported, running (its lock is held), failed, stopped, or
    missing.
    """
    if is_trained(folder):
        return "done" if (folder / RECORD).exists() else "imported"
    if is_locked(folder):
        return "running"
    if (folder / FAILURE).exists():
        return "failed"
    return "stopped" if (folder / MACHINE).exists() else "missing"


def read_finished(folder: Path) -> Run:
    """The run of a folder.

    Raises:
        ConfigError: it is no folder of a run, or the run is not finished.
    """
    run = read(folder)
    if (now := state(folder)) not in PRETRAINED:
        raise ConfigError(
            f"{run.name} is not finished (it is {now}): finish it with the command that started it"
        )
    return run


def find_run(name: str) -> Run:
    """A finished or imported run by its name or folder.

    Raises:
        ConfigError: an unknown run, or an unfinished one.
    """
    folder = find(name)
    run = read_finished(folder)
    if run.folder.resolve() != folder.resolve():
        raise ConfigError(
            f"{folder} is not the folder of its run, {run.folder}: check ALBERT_LAB_HOME"
        )
    return run


def queued(folders: Iterable[Path]) -> dict[Path, str]:
    """The numbers of the jobs, such as 12_0, of those of the runs that are in the queue of Slurm.

    Raises:
        MissingDataError: squeue does not answer, so that a run could be submitted twice.
    """
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i"]
    try:
        in_queue = {*subprocess.check_output(command, text=True).split()}
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingDataError(
            f"squeue does not answer ({error}), and runs may be queued: try again later, or where "
            "Slurm is"
        ) from error
    numbers = {}
    for folder in folders:
        file = folder / JOB
        number = file.read_text().strip() if file.exists() else None
        if number in in_queue:
            numbers[folder] = number
    return numbers
