"""Runs as jobs of Slurm: scripts for sbatch, in arrays that Slurm takes, each run submitted once."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from albert_lab import paths, signals
from albert_lab.errors import ConfigError
from albert_lab.machine import ALLOCATOR
from albert_lab.messages import to_stderr
from albert_lab.runs import preparing, states
from albert_lab.runs import run as runs
from albert_lab.storage import write_atomically
from albert_lab.studies.jobs import Job, Options

# Slurm sends USR1 before the time limit (--signal), only to the shell: save a checkpoint and requeue.
# scancel and preemption send TERM: save a checkpoint and exit; Slurm itself requeues preempted jobs,
# but no cancelled ones. Of an option that is given twice the last counts, so the user's cannot replace
# those that find jobs and parents.
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
trap 'told=1 requeue={requeue}; kill -TERM $child' USR1
trap 'told=1 requeue=; kill -TERM $child' TERM INT
eval "${{runs[$SLURM_ARRAY_TASK_ID]}} &"
child=$!; [ -z "$told" ] || kill -TERM $child  # a signal that came before the number was known
while kill -0 $child 2>/dev/null; do wait $child; done
wait $child; code=$?
[ $code = 0 ] || [ -z "$requeue" ] || scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
exit $code
"""
_LARGEST_ARRAY = 1001  # Slurm's own default of MaxArraySize


class Script(NamedTuple):
    """A script for sbatch: its file, its text, and the runs that its tasks train; none if it prepares data."""

    file: Path
    text: str
    jobs: list[Job]


def scripts(jobs: Sequence[Job], unprepared: Sequence[runs.Run], options: Options) -> Iterator[Script]:
    """The scripts that train runs, in the order in which they are submitted.

    The first prepares text, vocabulary and floors, if any are missing. Then there is one for each
    generation of runs: those that start from no other of them, those that start from these, and so on;
    or several, if Slurm takes no array of that size.
    """
    if jobs and unprepared:
        yield _script("prepare", preparing.commands(unprepared), [], options)
    size = largest_array()
    for depth, generation in enumerate(_generations(jobs)):
        for first in range(0, len(generation), size):
            array = generation[first : first + size]
            name = f"{array[0].folder.name}-{depth}"
            yield _script(name, [job.command for job in array], array, options)


def largest_array() -> int:
    """The number of tasks that Slurm takes in one array: its MaxArraySize, or where it says none, its default."""
    command = ["scontrol", "show", "config"]
    try:
        config = subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True)
    except (OSError, subprocess.SubprocessError):
        return _LARGEST_ARRAY
    limit = re.search(r"^MaxArraySize\s*=\s*(\d+)", config, re.MULTILINE)
    return max(1, int(limit[1])) if limit else _LARGEST_ARRAY


def _generations(jobs: Sequence[Job]) -> list[list[Job]]:
    """Runs that start from no other of them, those that start from these, and so on; parents come first in jobs."""
    depth: dict[Path, int] = {}
    generations: dict[int, list[Job]] = {}
    for job in jobs:
        # A parent that is none of these is in the queue, and those without a parent need not wait for it.
        depth[job.folder] = 0 if job.parent is None else 1 + depth.get(job.parent, 0)
        generations.setdefault(depth[job.folder], []).append(job)
    return [generation for _, generation in sorted(generations.items())]


def _script(name: str, commands: Sequence[list[str]], jobs: list[Job], options: Options) -> Script:
    folder = paths.home() / "slurm"
    log = str(folder).replace("%", "%%") + "/%A_%a.out"
    text = SCRIPT.format(
        name=name,
        last=len(commands) - 1,
        throttle=f"%{options.jobs}" if options.jobs else "",
        log=shlex.quote(log),
        options=options.slurm,
        here=shlex.quote(os.getcwd()),
        lines="\n".join(shlex.quote(shlex.join(command)) for command in commands),
        requeue="1" if jobs else "",  # half a preparation is worth nothing
    )
    return Script(folder / f"{name}.sh", text, jobs)


def submit(jobs: Sequence[Job], unprepared: Sequence[runs.Run], options: Options) -> None:
    """Submit the runs, and the preparation of their data, that are not in the queue, and return.

    Raises:
        MissingDataError: squeue does not answer.
        ConfigError: sbatch refuses a script; a preparation for which no run waits is taken back.
    """
    job_files = {job.folder: job.folder / states.JOB for job in jobs}
    data_files = {run.folder: _data_file(run) for run in unprepared}
    queued = states.queued([*job_files.values(), *data_files.values()])
    numbers = {folder: queued[file] for folder, file in job_files.items() if file in queued}
    prepared = {_array_of(queued[file]) for file in data_files.values() if file in queued}
    waiting = [job for job in jobs if job.folder not in numbers]
    new_data = [file for file in data_files.values() if file not in queued]
    unprepared = [run for run in unprepared if data_files[run.folder] in new_data]
    planned = [*scripts(waiting, unprepared, options)]
    for script in planned:  # before the first is submitted
        write_atomically(script.file, script.text)
    with signals.deferred():  # no job without its number in a file
        for script in planned:
            if not script.jobs:
                number = _sbatch(script, [])
                prepared.add(number)
                _note(number, new_data)
                to_stderr(f"job {number}: prepares text, before the runs ({script.file})")
        try:
            _submit_arrays([script for script in planned if script.jobs], numbers, prepared, options)
        except ConfigError as error:
            if len(numbers) + len(waiting) == len(jobs):  # no array was submitted
                for number in {_array_of(file.read_text()) for file in new_data if file.exists()}:
                    subprocess.run(["scancel", number], check=False)
            done = f"{len(numbers)} of {len(jobs)} runs are in the queue, and the same command submits the others"
            raise ConfigError(f"{error}: {done}") from error
    to_stderr(f"runs in the queue: {len(numbers)}; the same command, later, submits what is missing or reports")


def _submit_arrays(
    arrays: Sequence[Script], numbers: dict[Path, str], prepared: AbstractSet[str], options: Options
) -> None:
    """Submit arrays of runs, and note their jobs in the folders and in `numbers`, by folder."""
    earlier: str | None = None
    for array in arrays:
        # After any end: the weights of a parent may be final although a fine-tuning of it failed.
        awaited = {_array_of(numbers[job.parent]) for job in array.jobs if job.parent in numbers}
        if options.jobs and earlier:
            awaited.add(earlier)  # so many runs at a time of all arrays together
        after = [f"afterok:{number}" for number in sorted(prepared)]
        after += [f"afterany:{number}" for number in sorted(awaited)]
        earlier = _sbatch(array, after)
        numbers |= {job.folder: f"{earlier}_{place}" for place, job in enumerate(array.jobs)}
        _note(earlier, [job.folder / states.JOB for job in array.jobs])
        to_stderr(f"job {earlier}: {len(array.jobs)} runs ({array.file})")


def _note(number: str, files: Sequence[Path]) -> None:
    """Write the numbers of the tasks of an array into files."""
    for place, file in enumerate(files):
        write_atomically(file, f"{number}_{place}")


def _data_file(run: runs.Run) -> Path:
    """The file with the number of the job that prepares the data of a run."""
    return paths.home() / "slurm" / f"{preparing.shards_of(run).name}.{states.JOB}"


def _array_of(number: str) -> str:
    """The number of the array that a job, such as 12_0, is in."""
    return number.partition("_")[0]


def _sbatch(script: Script, after: Sequence[str]) -> str:
    """The number of the job that sbatch makes of a script; ConfigError if it refuses."""
    # sbatch passes it on; in the shell of a job, that one's own variables would reach the new job.
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("SLURM_") or key == "SLURM_CONF"
    }
    command = ["sbatch", "--parsable"]
    if after:
        command.append(f"--dependency={','.join(after)}")
    command.append(str(script.file))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ALLOCATOR | environment)
    if done.returncode:
        message = done.stderr.strip()
        raise ConfigError(f"sbatch refused {script.file}: {message}; correct the options of --slurm")
    return done.stdout.strip().split(";")[0]
