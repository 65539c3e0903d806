"""Runs as jobs of Slurm: a script for each generation, an array with a line for each run; submitted, not awaited."""

import os
import re
import shlex
import subprocess
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from albert_lab import paths, signals
from albert_lab.errors import ConfigError
from albert_lab.machine import ALLOCATOR
from albert_lab.messages import to_stderr
from albert_lab.runs import preparing, states
from albert_lab.runs.run import Run
from albert_lab.storage import write_atomically
from albert_lab.studies.jobs import Job, Launcher, generations

# Slurm sends USR1 before the time limit (--signal), only to the shell: save a checkpoint and requeue. scancel and
# preemption send TERM: save a checkpoint and exit; Slurm itself requeues preempted jobs, but no cancelled ones.
SCRIPT = """#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=0-{last}{throttle}
#SBATCH --output={log}
#SBATCH --open-mode=append --requeue --kill-on-invalid-dep=yes --signal=B:USR1@120
#SBATCH {options}
cd {here}
{exports}
runs=(
{lines}
)
requeue= child=
trap 'requeue={requeue}; kill -TERM $child' USR1
trap 'requeue=; kill -TERM $child' TERM INT
eval "${{runs[$SLURM_ARRAY_TASK_ID]}} &"
child=$!
while kill -0 $child 2>/dev/null; do wait $child; done
wait $child; code=$?
[ $code = 0 ] || [ -z "$requeue" ] || scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
exit $code
"""


@dataclass(frozen=True)
class Script:
    """A script for sbatch: its file, its text, and the runs that its tasks train; none if it prepares text."""

    file: Path
    text: str
    jobs: Sequence[Job]


def scripts(
    jobs: Sequence[Job], unprepared: Sequence[Run], settings: Launcher, queued: Container[Path] = ()
) -> Iterator[Script]:
    """A script that prepares text, vocabulary and floors, if any are missing; then one for each generation of runs.

    Args:
        queued: folders of runs to leave out, since they are in the queue.
    """
    left = [[job for job in generation if job.folder not in queued] for generation in generations(jobs)]
    first = [("prepare", preparing.commands(unprepared), [])] if any(left) and unprepared else []
    arrays = [
        (f"{of[0].folder.name}-{number}", [job.command for job in of], of) for number, of in enumerate(left) if of
    ]
    # Also if the user's sbatch passes none on; its cores are not those of this process.
    environment = {key: value for key, value in os.environ.items() if re.match("ALBERT_LAB_|PYTHONPATH$", key)}
    environment |= ALLOCATOR | {"ALBERT_LAB_HOME": str(paths.home())}
    environment.pop("ALBERT_LAB_THREADS", None)
    folder = paths.home() / "slurm"
    for name, commands, of in (*first, *arrays):
        text = SCRIPT.format(
            name=name,
            last=len(commands) - 1,
            throttle=f"%{settings.at_once}" if settings.at_once else "",
            log=shlex.quote(str(folder).replace("%", "%%") + "/%A_%a.out"),
            options=settings.sbatch,
            here=shlex.quote(os.getcwd()),
            exports="\n".join(f"export {key}={shlex.quote(value)}" for key, value in sorted(environment.items())),
            lines="\n".join(shlex.quote(shlex.join(command)) for command in commands),
            requeue="1" if of else "",  # half a preparation is worth nothing
        )
        yield Script(folder / f"{name}.sh", text, of)


def submit(jobs: Sequence[Job], unprepared: Sequence[Run], settings: Launcher) -> None:
    """Submit the runs that are not in the queue, and return.

    Raises:
        MissingDataError: squeue does not answer.
        ConfigError: sbatch refuses a script.
    """
    queued = states.queued(job.folder for job in jobs)
    numbers = dict(queued)
    prepared: list[str] = []
    with signals.deferred():  # no job without its number in the folders of its runs
        for script in scripts(jobs, unprepared, settings, queued):
            write_atomically(script.file, script.text)
            # After any end: the weights of a parent may be final although a fine-tuning of it failed.
            parents = {numbers[job.parent].partition("_")[0] for job in script.jobs if job.parent in numbers}
            number = _sbatch(script.file, [*prepared, *(f"afterany:{parent}" for parent in sorted(parents))])
            prepared = prepared if script.jobs else [f"afterok:{number}"]
            for place, job in enumerate(script.jobs):
                numbers[job.folder] = f"{number}_{place}"
                write_atomically(job.folder / states.JOB, numbers[job.folder])
            to_stderr(
                f"job {number}: {f'runs: {len(script.jobs)}' if script.jobs else 'prepares text'} ({script.file})"
            )
    to_stderr(
        f"runs in the queue: {len(numbers)}, {len(numbers) - len(queued)} of them new. `albert-lab status`"
        " shows them; the same command, when they have ended, submits what is missing again, or writes the report"
    )


def _sbatch(file: Path, after: Sequence[str]) -> str:
    """The number of the job that sbatch makes of a script."""
    # In the shell of a job, its own variables would reach the new job.
    outside = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_") or key == "SLURM_CONF"}
    command = ["sbatch", "--parsable", *([f"--dependency={','.join(after)}"] if after else []), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=outside)
    if done.returncode:
        raise ConfigError(f"sbatch refused {file}: {done.stderr.strip()}; correct launcher.sbatch")
    return done.stdout.strip().split(";")[0]
