"""What launchers get, runs to train as commands; and the launcher that only prints these commands."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from albert_lab.runs import preparing
from albert_lab.runs.run import Run

# In place of the exit code of a run's process: it was not started, because the run's parent did not finish.
PARENT_FAILED = -1000


@dataclass(frozen=True)
class Job:
    """A run to train.

    Attributes:
        folder: the run's folder.
        arguments: of its process: tasks to fine-tune on, seeds.
        parent: the folder of the run that it starts from, if that one is trained too.
        processes: the number of processes that train it together.
    """

    folder: Path
    arguments: Sequence[str] = ()
    parent: Path | None = None
    processes: int = 1

    @property
    def command(self) -> list[str]:
        """The command line that trains the run; torchrun starts several processes, and its exit code is 0 or 1."""
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.processes}"]
        worker = ["-m", "albert_lab.runs.worker", str(self.folder), *self.arguments]
        return [sys.executable, *(torchrun if self.processes > 1 else ()), *worker]


def generations(jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs that start from no other of them, then those that start from these, and so on."""
    by_folder = {job.folder: job for job in jobs}
    found: list[list[Job]] = []
    for job in jobs:
        depth, ancestor = 0, job
        while ancestor.parent in by_folder:
            depth, ancestor = depth + 1, by_folder[ancestor.parent]
        found += [[] for _ in range(depth + 1 - len(found))]
        found[depth].append(job)
    return found


def print_commands(jobs: Sequence[Job], unprepared: Sequence[Run]) -> None:
    """Print one line per run on stdout, after one that prepares data, if any is missing; nothing is started."""
    if unprepared:
        print("# first, and alone:")
        print(shlex.join(preparing.command(unprepared)))
    for generation in generations(jobs):
        for job in generation:
            if job.parent:
                print(f"# after the line of {job.parent.name}:")
            print(shlex.join(job.command), flush=True)
