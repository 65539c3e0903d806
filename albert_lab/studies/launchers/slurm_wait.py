"""Waiting for runs that are jobs of Slurm: how each ended, from its folder and the queue."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from albert_lab import signals, squeue
from albert_lab.errors import INTERRUPTED, STOPPED
from albert_lab.messages import to_stderr
from albert_lab.runs import job, states
from albert_lab.runs.run import is_trained
from albert_lab.studies.launchers.base import LOST, PARENT_FAILED

_NAP_SECONDS = 0.2


def wait(
    numbers: Mapping[Path, str],
    poll_seconds: float,
    parents: Mapping[Path, Path],
    on_end: Callable[[Path, int], bool],
    received: Sequence[int],
) -> int:
    """Wait for the jobs of a study, and report how each run ended; the code of the study.

    Args:
        numbers: the number of the job of each run's folder.
        poll_seconds: the time between two looks.
        parents: the folder of the run that a run starts from.
        on_end: see Launcher.
        received: the signals that this process got; they end the waiting and leave the jobs.
    """
    to_stderr(f"waiting for {len(numbers)} in the queue; Ctrl-C ends the waiting and leaves them")
    watched = _Watched(dict(numbers), parents)
    study_code, is_cancelled = 0, False
    while watched.left:
        _nap(poll_seconds, received)
        ended = watched.look()
        if received:
            say_how_to_end(watched.left.values())
            return signals.code_of(received[0])
        for folder, code in ended.items():
            if is_cancelled and not job.log(folder, numbers[folder]).exists():  # it never started
                continue
            if code in (STOPPED, INTERRUPTED):
                study_code = code
                to_stderr(f"{folder.name}: stopped; the same command resumes it")
            if not on_end(folder, code) and not is_cancelled and watched.left:
                is_cancelled = True
                subprocess.run(["scancel", "--state=PENDING", *watched.left.values()], check=False)
    return study_code


@dataclass
class _Watched:
    """The jobs of runs that have not ended, and what was seen of them.

    Attributes:
        left: their numbers, by the folder of the run.
        parents: the folder of the run that a run starts from.
        failed: folders of runs that ended with another code than 0.
        unknown: folders of runs that were not in the queue at the last look, with nothing known of their end.
        said: what was last said of each.
        is_answered: whether squeue answered at the last look.
    """

    left: dict[Path, str]
    parents: Mapping[Path, Path]
    failed: set[Path] = field(default_factory=set)
    unknown: set[Path] = field(default_factory=set)
    said: dict[Path, str] = field(default_factory=dict)
    is_answered: bool = True

    def look(self) -> dict[Path, int]:
        """The codes of runs that have ended since the last look; only about the others is the queue asked."""
        codes = {folder: _exit_code(folder, number) for folder, number in self.left.items()}
        # A job that stopped or failed may be back in the queue: Slurm requeues what it preempts.
        others = [folder for folder, code in codes.items() if code != 0]
        queue = self._queue() if others else None
        for folder in others:
            if queue is not None:
                codes[folder] = self._code_of(folder, queue)
            elif codes[folder] == STOPPED:
                codes[folder] = None
        ended = {folder: code for folder, code in codes.items() if code is not None}
        self.failed |= {folder for folder, code in ended.items() if code}
        ended |= {folder: PARENT_FAILED for folder, code in ended.items() if code and self._lacks_parent(folder)}
        self.left = {folder: number for folder, number in self.left.items() if folder not in ended}
        return ended

    def _lacks_parent(self, folder: Path) -> bool:
        """Whether the run that a run starts from ended before its weights were final."""
        parent = self.parents.get(folder)
        return parent is not None and parent in self.failed and not is_trained(parent)

    def _queue(self) -> dict[str, squeue.Job] | None:
        queue = squeue.jobs()
        if (queue is not None) != self.is_answered:
            self.is_answered = queue is not None
            to_stderr("squeue answers again" if self.is_answered else "squeue does not answer: the jobs continue")
        return queue

    def _code_of(self, folder: Path, queue: Mapping[str, squeue.Job]) -> int | None:
        """The code of a run; None if its job is in the queue, or nothing is known of its end yet."""
        number, parent = self.left[folder], self.parents.get(folder)
        if job_there := queue.get(number):
            if self.said.get(folder) != job_there.description:
                self.said[folder] = job_there.description
                to_stderr(f"{folder.name}: {job_there.description}")
            return None
        if self._lacks_parent(folder) and not job.log(folder, number).exists():
            return PARENT_FAILED
        if (code := _exit_code(folder, number)) is not None:
            return code
        if states.state(folder) == "done":
            return 0
        # A shared file system may show what a job wrote a little later than the queue shows its end.
        is_new = folder not in self.unknown
        self.unknown.add(folder)
        return None if is_new or parent in self.left else _explained(folder, number)  # it ends as its parent does


def _exit_code(folder: Path, number: str) -> int | None:
    """The exit code that the job of a run wrote at its end; None before."""
    with contextlib.suppress(OSError):
        os.listdir(folder)  # makes a network file system look again
    return job.exit_code(folder, number)


def _explained(folder: Path, number: str) -> int:
    """STOPPED for a job that Slurm or scancel ended, else LOST."""
    submitted = job.read(folder)
    is_unprepared = submitted is not None and submitted.preparation is not None
    if job.was_stopped(folder) if job.log(folder, number).exists() else not is_unprepared:
        to_stderr(f"{folder.name}: {job.describe_end(folder)}")
        return STOPPED
    return LOST


def _nap(seconds: float, received: Sequence[int]) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not received:
        time.sleep(min(_NAP_SECONDS, seconds))


def say_how_to_end(numbers: Iterable[str]) -> None:
    """Say how to cancel the jobs, if any are left."""
    numbers_left = list(numbers)
    if numbers_left:
        ends = f"scancel {' '.join(numbers_left)}"
        to_stderr(f"the jobs continue, and the same command waits for them again; to end them: {ends}")
