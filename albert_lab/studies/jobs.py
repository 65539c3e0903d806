"""The jobs of a plan: the command line that trains each run, and how jobs are started."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from albert_lab import own_code, paths
from albert_lab.studies.plan import Point


@dataclass(frozen=True)
class Options:
    """How the runs of a study are trained, and what is printed of them, as on the command line.

    jobs is the number of runs at a time, 0 for one a GPU; None: one here, and of Slurm as many as
    it starts. slurm has the options of sbatch, None without Slurm.
    """

    jobs: int | None = None
    slurm: str | None = None
    tasks: str | None = None
    dry_run: bool = False
    as_json: bool = False

    @property
    def is_here(self) -> bool:
        return self.slurm is None


class Job(NamedTuple):
    """A run to train.

    It has the run's folder, its command line, the folder of the run that it starts from, if that is
    trained too, and the number of processes that train it together.
    """

    folder: Path
    command: list[str]
    parent: Path | None = None
    processes: int = 1


def jobs_of(points: Sequence[Point]) -> list[Job]:
    """The jobs that train runs and then fine-tune them."""
    to_train = {point.run.folder for point in points}
    jobs = []
    for point in points:
        parent = point.parent and point.parent.run.folder
        processes = point.config.machine.processes if point.lacks_pretraining else 1
        jobs.append(
            Job(
                folder=point.run.folder,
                command=_command(point, processes),
                parent=parent if parent in to_train else None,
                processes=processes,
            )
        )
    return jobs


def _command(point: Point, processes: int) -> list[str]:
    arguments = {
        "tasks": [*point.tasks.values()],
        "seeds": point.seeds,
        "include": own_code.included_files(),
        "conf": [str(folder) for folder in paths.own_conf],
        "with_random": point.with_random,
    }
    process = ["albert_lab.runs.worker"]
    if processes > 1:
        process = ["albert_lab.runs.together", str(processes)]
    return [sys.executable, "-m", *process, str(point.run.folder), json.dumps(arguments)]
