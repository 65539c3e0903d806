"""The state of a run, and its job in the queue of Slurm."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from albert_lab import files, storage
from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.runs.run import FAILURE, MACHINE, RECORD, Run, failure_in, find, is_locked, is_trained, read

State = Literal["done", "imported", "failed", "running", "queued", "trained", "stopped", "missing"]
PRETRAINED = ("done", "imported")  # states in which the weights are final
JOB = "slurm-job"  # the file with the number of a run's job
# Of the last line of a log: share of the budget, losses in nats, seconds that are left.
OF_LINE = ("share", "step", "tokens_per_second", "loss", "mlm_loss", "pair_loss", "seconds_left")
FRESH_SECONDS = 5.0  # of an answer of squeue: a listing asks about many runs
_PATIENCE_SECONDS = 60.0  # with a busy controller
_WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")


def state(folder: Path) -> State:
    """The state of a pre-training: done, imported, failed, running (its lock is held, or its job runs), queued (its job
    waits), stopped, or missing.
    """
    if is_trained(folder):
        return "done" if (folder / RECORD).exists() else "imported"
    if by := taken(folder):
        return by
    if (folder / FAILURE).exists():
        return "failed"
    return "stopped" if (folder / MACHINE).exists() else "missing"


def taken(folder: Path) -> Literal["running", "queued"] | None:
    """Whether a process or a job of Slurm works on a run, or will: trains it or fine-tunes it."""
    if is_locked(folder):
        return "running"
    job = queued(folder)
    return None if job is None else "queued" if job.state in _WAITING else "running"


def read_finished(folder: Path) -> Run:
    """The run of a folder.

    Raises:
        ConfigError: it is no folder of a run, or the run is not finished.
    """
    run = read(folder)
    if (now := state(folder)) not in PRETRAINED:
        raise ConfigError(f"{run.name} is not finished (it is {now}): finish it with the command that started it")
    return run


def find_run(name: str) -> Run:
    """A finished or imported run by its name or folder.

    Raises:
        ConfigError: an unknown run, one of another results version, or an unfinished one.
    """
    folder = find(name)
    run = read_finished(folder)
    if run.folder.resolve() != folder.resolve():
        raise ConfigError(f"{folder} is not the folder of its run, which is {run.folder}: check ALBERT_LAB_HOME")
    return run


class Queued(NamedTuple):
    """A job in the queue of Slurm: its number, its state, and its nodes, or the reason why it waits."""

    number: str
    state: str
    place: str

    def __str__(self) -> str:
        return f"job {self.number} {'' if self.state in _WAITING else 'on '}{self.place}"


def note_job(folder: Path, number: str) -> None:
    """Note the job that trains a run, which the queue has from now on."""
    _jobs.cache_clear()
    storage.write_atomically(folder / JOB, number + "\n")


def queued(folder: Path) -> Queued | None:
    """The job of a run, if it is in the queue; None if it is not, or nothing is known of the queue here."""
    file = folder / JOB
    if not file.exists():
        return None
    number = files.read_text(file, "remove it: the run is then submitted again").strip()
    return (_jobs(time.monotonic() // FRESH_SECONDS) or {}).get(number)


def all_queued(folders: Sequence[Path]) -> dict[Path, Queued]:
    """The jobs of those of the runs that are in the queue.

    Raises:
        MissingDataError: squeue does not answer, so that a run could be submitted twice.
    """
    if _jobs(time.monotonic() // FRESH_SECONDS) is None:
        raise MissingDataError("squeue does not answer, so it is not known which runs are queued: try again later")
    return {folder: job for folder in folders if (job := queued(folder))}


@lru_cache(1)
def _jobs(_moment: float) -> Mapping[str, Queued] | None:
    """The jobs of this user by number; None if Slurm is not installed or does not answer."""
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i|%T|%R"]
    try:
        text = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL, timeout=_PATIENCE_SECONDS)
        return {(job := Queued(*line.split("|", 2))).number: job for line in text.splitlines()}
    except (OSError, TypeError, subprocess.SubprocessError):
        return None


def row_of(folder: Path, title: str = "") -> dict[str, Any]:
    """A run: its title (its row and seed in a report), its name, its state, numbers of its last logged step, its
    fine-tunings, and why it failed or where it is.
    """
    from albert_lab.runs import results  # it takes a while to import, and only a listing needs it
    from albert_lab.tasks.records import FOLDER

    try:
        now, lines = state(folder), results.read_metrics(folder)
        reason = failure_in(folder / FAILURE) if now == "failed" else str(queued(folder) or "")
    except DamagedFileError as error:
        now, lines, reason = "damaged", [], str(error)
    last = next((line for line in reversed(lines) if line["event"] == "training"), {})
    hidden = () if now == "running" else ("tokens_per_second", "seconds_left")
    numbers = {key: None if key in hidden else last.get(key) for key in OF_LINE}
    tuned = sorted(file.stem for file in (folder / FOLDER).glob("*-seed*[0-9].json"))
    return {
        "title": title or folder.name,
        "run": folder.name,
        "state": now,
        **numbers,
        "fine_tuned": tuned,
        "reason": reason,
    }
