"""A run in the queue of Slurm: the number of its job, in its folder, and the place of that job in the queue."""

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from albert_lab import files, paths
from albert_lab.errors import MissingDataError
from albert_lab.storage import write_atomically

FILE = "slurm-job"
_REMEDY = "remove it: the run is then submitted again"
# Age of an answer of squeue that is recent enough for a listing, which asks about many runs; and a busy controller.
_FRESH_SECONDS, _PATIENCE_SECONDS = 5.0, 60.0
_WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
_last: tuple[float, "Mapping[str, Queued] | None"] = (0.0, None)


@dataclass(frozen=True)
class Queued:
    """A job in the queue: its number, and whether it waits, with its reason or its nodes, as `(Priority)` or `n1`."""

    number: str
    is_waiting: bool
    place: str

    @property
    def words(self) -> str:
        return f"job {self.number} {self.place}" if self.is_waiting else f"job {self.number} on {self.place}"


def note(folder: Path, number: str) -> None:
    """Note the job that trains a run, which the queue has from now on."""
    global _last
    _last = 0.0, None
    write_atomically(folder / FILE, number + "\n")


def log_of(number: str) -> Path:
    return paths.home() / "slurm" / f"{number}.out"


def find(folder: Path) -> Queued | None:
    """The job of a run, if it is in the queue; None if it is not, or nothing is known of the queue here."""
    return (_jobs() or {}).get(_number(folder))


def find_all(folders: list[Path]) -> dict[Path, Queued]:
    """The jobs of those of the runs that are in the queue.

    Raises:
        MissingDataError: squeue does not answer, so that a run could be submitted twice.
    """
    jobs = _jobs()
    if jobs is None:
        raise MissingDataError("squeue does not answer, so it is not known which runs are queued: try again later")
    return {folder: jobs[number] for folder in folders if (number := _number(folder)) in jobs}


def as_columns(folder: Path) -> dict[str, str | None]:
    """The run's job in the queue, its node, and its place in words, as columns of a listing."""
    job = find(folder)
    if job is None:
        return {"job": None, "node": None, "place": None}
    return {"job": job.number, "node": None if job.is_waiting else job.place, "place": job.words}


def last_words(folder: Path) -> str | None:
    """The end of the log of a run's last job; None if it had none, or was not started yet."""
    number = _number(folder)
    log = log_of(number)
    if not number or not log.is_file():
        return None
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f"job {number}: {lines[-1] if lines else 'no output'} ({log})"


def _number(folder: Path) -> str:
    file = folder / FILE
    return files.read_text(file, _REMEDY).strip() if file.exists() else ""


def _jobs() -> Mapping[str, Queued] | None:
    """The jobs of this user by number; None if Slurm is not installed or does not answer."""
    global _last
    if not _last[0] or time.monotonic() - _last[0] >= _FRESH_SECONDS:
        command = ["squeue", "--me", "--array", "--noheader", "--format=%i|%T|%R"]
        try:
            text = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL, timeout=_PATIENCE_SECONDS)
            lines = (line.split("|", 2) for line in text.splitlines())
            jobs = {number: Queued(number, state in _WAITING, place) for number, state, place in lines}
        except (OSError, ValueError, subprocess.SubprocessError):
            jobs = None
        _last = time.monotonic(), jobs
    return _last[1]
