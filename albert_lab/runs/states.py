"""The state of a run, the reason of its failure, and its reset."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from albert_lab import files
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.runs import queue, results
from albert_lab.runs.finetunings import Failure, Finetuning
from albert_lab.runs.run import FAILURE, IMPORT, MACHINE, RUN_FILE, Run, is_locked, read
from albert_lab.tasks.records import FOLDER as FINETUNINGS

State = Literal["done", "imported", "failed", "running", "queued", "trained", "stopped", "missing"]
# States in which the weights are final.
PRETRAINED = ("done", "imported")
# States in which all numbers exist: in the run's folder, or only in reports.
FINISHED = ("done",)


def state(folder: Path) -> State:
    """The state of a pre-training: done, imported, failed, running (its lock is held, or its job runs), queued (its job
    waits), stopped, or missing.
    """
    if (folder / results.RECORD).exists():
        return "done"
    if (folder / IMPORT).exists():
        return "imported"
    if not folder.is_dir():
        return "missing"
    if by := taken(folder):
        return by
    if (folder / FAILURE).exists():
        return "failed"
    return "stopped" if (folder / MACHINE).exists() else "missing"


def taken(folder: Path) -> Literal["running", "queued"] | None:
    """Whether a process or a job of Slurm works on a run, or will: trains it or fine-tunes it."""
    if is_locked(folder):
        return "running"
    queued = queue.find(folder)
    return None if queued is None else "queued" if queued.is_waiting else "running"


def with_finetunings(run: Run, pretraining: State, missing: Sequence[Finetuning]) -> State:
    """The state of a run with its fine-tunings: from that of its pre-training, and the fine-tunings that it lacks.

    A run that only lacks some is trained, and not done.
    """
    if pretraining != "done" or not missing:
        return pretraining
    return taken(run.folder) or ("failed" if all(item.failure for item in missing) else "trained")


def has_weights(folder: Path) -> bool:
    """Whether other runs can start from a run: its last checkpoint was not freed."""
    return any((folder / "checkpoint").glob("step-" + "[0-9]" * 8))


def parents(folder: Path) -> dict[str, str]:
    """Parent of each run under a folder that starts from another one, by name; a damaged run.yaml names none."""
    parent_of = {}
    for file in folder.glob(f"*/{RUN_FILE}"):
        with suppress(DamagedFileError):
            # As plain data: a run of an earlier version, with other keys, has a parent too.
            start_from: Any = files.read_yaml(file).get("start_from")
            if isinstance(start_from, dict) and "run" in start_from:
                parent_of[file.parent.name] = str(start_from["run"])
    return parent_of


def is_damaged(folder: Path) -> bool:
    try:
        results.check(folder)
    except DamagedFileError:
        return True
    return False


def check_finished(folder: Path) -> None:
    name = read(folder).name
    if state(folder) not in PRETRAINED:
        raise ConfigError(f"{name} is not finished (it is {state(folder)}): finish it with the command that started it")


def failure(folder: Path) -> str:
    """The reason of a run's failure, in one line.

    Raises:
        DamagedFileError: its file cannot be read.
    """
    return files.read_json(folder / FAILURE, Failure, "--retry-failed forgets it").error


def forget(folder: Path) -> None:
    """Remove all that a run has made, and its failure."""
    for name in (FAILURE, results.RECORD, results.REPLACED, results.METRICS, results.LAYERS, MACHINE):
        (folder / name).unlink(missing_ok=True)
    for name in ("checkpoint", FINETUNINGS):
        shutil.rmtree(folder / name, ignore_errors=True)
