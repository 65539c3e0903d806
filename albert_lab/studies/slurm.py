"""Runs as jobs of Slurm: scripts for sbatch, in arrays that Slurm takes, each run submitted
once.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from albert_lab import paths, signals
from albert_lab.errors import ConfigError
from albert_lab.machine import ALLOCATOR
from albert_lab.messages import to_stderr
from albert_lab.runs import states
from albert_lab.storage import write_atomically
from albert_lab.studies.jobs import Job, Options

# Slurm sends USR1 before the time limit (--signal), only to the shell: save a checkpoint and
# requeue. scancel and preemption send TERM: save a checkpoint and exit; Slurm itself requeues
# preempted jobs, but no cancelled ones. Of an option that is given twice the last counts, so the
# user's cannot replace those that find jobs and parents.
SCRIPT = """#!/bin/bash
#SBATCH --open-mode=append --requeue --kill-on-invalid-dep=yes --signal=B:USR1@120
#SBATCH {options}
#SBATCH --job-name={name}
#SBATCH --array=0-{last}{throttle}
#SBATCH --output={log}
cd {here} || exit 4  # this node does not see it
runs=(
{lines}
)
requeue= child= told=
trap 'told=1 requeue=1; kill -TERM $child' USR1
trap 'told=1 requeue=; kill -TERM $child' TERM INT
eval "${{runs[$SLURM_ARRAY_TASK_ID]}} &"
child=$!; [ -z "$told" ] || kill -TERM $child  # a signal that came before the number was known
while kill -0 $child 2>/dev/null; do wait $child; done
wait $child; code=$?
task=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
[ $code = 0 ] || [ -z "$requeue" ] || scontrol requeue $task
exit $code
"""
_LARGEST_ARRAY = 1001  # Slurm's own default of MaxArraySize


class Script(NamedTuple):
    """A script for sbatch: its file, its text, and the runs that its tasks train."""

    file: Path
    text: str
    jobs: list[Job]


def scripts(jobs: Sequence[Job], options: Options) -> Iterator[Script]:
    """The scripts that train runs, in the order in which they are submitted.

    There is one for each generation of runs: those that start from no other of them, those that
    start from these, and so on; or several, if Slurm takes no array of that size.
    """
    size = largest_array()
    folder = paths.home() / "slurm"
    log = str(folder).replace("%", "%%") + "/%A_%a.out"
    for depth, generation in enumerate(_generations(jobs)):
        for first in range(0, len(generation), size):
            array = generation[first : first + size]
            name = f"{array[0].folder.name}-{depth}"
            text = SCRIPT.format(
                name=name,
                last=len(array) - 1,
                throttle=f"%{options.jobs}" if options.jobs else "",
                log=shlex.quote(log),
                options=options.slurm,
                here=shlex.quote(os.getcwd()),
                lines="\n".join(shlex.quote(shlex.join(job.command)) for job in array),
            )
            yield Script(folder / f"{name}.sh", text, array)


def largest_array() -> int:
    """The number of tasks that Slurm takes in one array: its MaxArraySize, or where it says none,
    its default.
    """
    command = ["scontrol", "show", "config"]
    config = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    limit = re.search(r"^MaxArraySize\s*=\s*(\d+)", config, re.MULTILINE)
    return max(1, int(limit[1])) if limit else _LARGEST_ARRAY


def _generations(jobs: Sequence[Job]) -> list[list[Job]]:
    """Runs that start from no other of them, those that start from these, and so on; parents come
    first in jobs.
    """
    depth: dict[Path, int] = {}
    for job in jobs:
        # A parent that is none of these is in the queue, and those without a parent need not wait
        # for it.
        depth[job.folder] = 0 if job.parent is None else 1 + depth.get(job.parent, 0)
    levels = sorted({*depth.values()})
    return [[job for job in jobs if depth[job.folder] == level] for level in levels]


def submit(jobs: Sequence[Job], options: Options) -> None:
    """Submit the runs that are not in the queue, and return.

    Raises:
        MissingDataError: squeue does not answer.
        ConfigError: sbatch refuses a script.
    """
    numbers = states.queued(job.folder for job in jobs)
    waiting = [job for job in jobs if job.folder not in numbers]
    arrays = [*scripts(waiting, options)]
    for script in arrays:  # before the first is submitted
        write_atomically(script.file, script.text)
    try:
        with signals.deferred():  # no job without its number in the folders of its runs
            _submit_arrays(arrays, numbers, options)
    except ConfigError as error:
        done = f"{len(numbers)} of {len(jobs)} runs are in the queue"
        raise ConfigError(f"{error}; {done}, and the same command submits the others") from error
    to_stderr(
        f"runs in the queue: {len(numbers)}; the same command, later, submits what is missing or "
        "reports"
    )


def _submit_arrays(arrays: Sequence[Script], numbers: dict[Path, str], options: Options) -> None:
    """Submit arrays of runs, and note their jobs in the folders and in `numbers`, by folder."""
    earlier: str | None = None
    for array in arrays:
        # After any end: the weights of a parent may be final although a fine-tuning of it failed.
        awaited = {
            numbers[job.parent].partition("_")[0] for job in array.jobs if job.parent in numbers
        }
        if options.jobs and earlier:
            awaited.add(earlier)  # so many runs at a time of all arrays together
        earlier = _sbatch(array, [f"afterany:{number}" for number in sorted(awaited)])
        for place, job in enumerate(array.jobs):
            numbers[job.folder] = f"{earlier}_{place}"
            write_atomically(job.folder / states.JOB, numbers[job.folder])
        to_stderr(f"job {earlier}: {len(array.jobs)} runs ({array.file})")


def _sbatch(script: Script, dependencies: Sequence[str]) -> str:
    """The number of the job that sbatch makes of a script, which waits for the dependencies, such
    as `afterany:123`; ConfigError if sbatch refuses.
    """
    # sbatch passes its environment on: where this command itself runs in a job, the variables of
    # that job must not reach the new one.
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("SLURM_") or key == "SLURM_CONF"
    }
    command = ["sbatch", "--parsable"]
    if dependencies:
        command.append(f"--dependency={','.join(dependencies)}")
    command.append(str(script.file))
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=ALLOCATOR | environment
    )
    if done.returncode:
        raise ConfigError(
            f"sbatch refused {script.file}: {done.stderr.strip()}; correct the options of --slurm"
        )
    return done.stdout.strip().split(";")[0]
