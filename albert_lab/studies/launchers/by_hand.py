"""Runs as printed command lines for any other way to start them; comments give their order and dependencies."""

import shlex
from collections.abc import Sequence

from albert_lab.runs import preparing
from albert_lab.runs.run import Run
from albert_lab.studies.launchers.base import Job, generations


def launch(jobs: Sequence[Job], unprepared: Sequence[Run]) -> None:
    """Print one line per run on stdout, after one that prepares data, if any is missing; nothing is started."""
    if unprepared:
        print("# first, and alone:")
        print(shlex.join(preparing.command(unprepared)))
    for generation in generations(jobs):
        for job in generation:
            if job.parent:
                print(f"# after the line of {job.parent.name}:")
            print(shlex.join(job.command), flush=True)
