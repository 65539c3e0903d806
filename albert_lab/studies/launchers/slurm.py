"""Runs as jobs of Slurm: an array of those that wait for no other; uses only sbatch, squeue and scancel."""

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from albert_lab import allocator, paths, signals, squeue
from albert_lab.config.launcher import SlurmLauncher
from albert_lab.config.schema import digest
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import to_stderr
from albert_lab.runs import job, preparing
from albert_lab.studies.launchers.base import NOT_AWAITED, in_order, tasks_in, worker
from albert_lab.studies.launchers.slurm_wait import say_how_to_end, wait

# Slurm sends USR1 before the time limit (--signal), only to the shell: save a checkpoint and requeue. scancel and
# preemption send TERM: save a checkpoint and exit; Slurm itself requeues preempted jobs, but no cancelled ones.
#
# If the options ask for several tasks, srun starts one process in each, and these train the run together. TERM to srun
# would kill them, so scancel signals them. The exit code is that of the first process.
#
# The number of a task of an array names it alone; SLURM_JOB_ID can be that of the whole array.
SCRIPT = """#!/bin/bash
near_limit= asked= child=
tasks={tasks}
number=$SLURM_JOB_ID
[ -z "$SLURM_ARRAY_TASK_ID" ] || number=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
case ${{SLURM_ARRAY_TASK_ID:-0}} in
{commands}
esac
make() {{
  if [ "$tasks" -le 1 ]; then exec "$@"; fi
  trap '' TERM INT USR1
  export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
  [ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
  rm -f "$exit.first"
  srun --ntasks="$tasks" --kill-on-bad-exit=0 --wait=0 --mpi=none bash -c '
    trap : TERM INT
    "$@" & child=$!
    while kill -0 $child 2>/dev/null; do wait $child; done
    wait $child; code=$?
    [ "$SLURM_PROCID" != 0 ] || echo $code > "$0"
    exit $code' "$exit.first" "$@"
  code=$?
  [ ! -s "$exit.first" ] || code=$(cat "$exit.first")
  rm -f "$exit.first"
  exit $code
}}
stop() {{
  asked=1
  if [ "$tasks" -gt 1 ]; then scancel --quiet --signal=TERM "$number"; return; fi
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}}
trap 'near_limit=1; stop' USR1
trap 'near_limit=; stop' TERM INT
rm -f "$exit"
cd {here}
{exports}
make "$@" &
child=$!
[ -z "$asked" ] || stop
while kill -0 "$child" 2>/dev/null; do wait "$child"; done
wait "$child"; code=$?
# Asked to stop while it started: there is nothing to save yet.
[ $code = 143 ] && [ -n "$asked" ] && code=75
if [ $code = 75 ] && [ -n "$near_limit" ]; then
  echo "the time limit is near: back into the queue"
  scontrol requeue "$number" && exit 75
  echo "it could not be requeued: the same command submits it again"
fi
echo "$code $number" > "$exit"
exit $code
"""
_NOT_PASSED_ON = ("ALBERT_LAB_THREADS", signals.PARENT)
_OF_A_JOB = ("SLURM_ARRAY_", "SLURM_JOB", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_CPUS_PER_TASK", "SLURM_TASKS_PER_NODE")
_ALL_TASKS = "${SLURM_NTASKS:-${SLURM_JOB_NUM_NODES:-1}}"


def launch(
    folders: Mapping[Path, Sequence[str]],
    *,
    settings: SlurmLauncher,
    detach: bool,
    on_end: Callable[[Path, int], bool],
    parents: Mapping[Path, Path],
) -> int:
    """Submit the runs that are not in the queue, and wait for all of them; see Launcher.

    SIGINT and SIGTERM only end the waiting.

    Args:
        settings: options of sbatch, who prepares the text, and how often the queue is polled.
        detach: do not wait.

    Raises:
        MissingDataError: no sbatch on the path.
        ConfigError: sbatch refuses its options.
    """
    with signals.deferred() as received:
        numbers = _submit_all(folders, settings, parents, received)
        if received:
            say_how_to_end(numbers.values())
            return signals.code_of(received[0])
        if detach:
            to_stderr(f"{len(numbers)} in the queue; the same command without --detach waits for them")
            return NOT_AWAITED
        return wait(numbers, settings.poll_seconds, parents, on_end, received)


def _submit_all(
    folders: Mapping[Path, Sequence[str]],
    settings: SlurmLauncher,
    parents: Mapping[Path, Path],
    received: Sequence[int],
) -> dict[Path, str]:
    """The job of each run: the one in the queue, or a new one."""
    queue = squeue.jobs()
    if queue is None:
        to_stderr("squeue does not answer: a run may be in the queue already; its second job waits for the first one")
    numbers: dict[Path, str] = {}
    todo: dict[Path, list[str]] = {}
    for folder in in_order(folders, parents):
        known, arguments = job.read(folder), list(folders[folder])
        if known and (job_there := (queue or {}).get(known.job)):
            arguments = _joined(known.arguments, arguments)
            if arguments == known.arguments:
                numbers[folder] = known.job
                to_stderr(f"{folder.name}: {job_there.description}")
                continue
        todo[folder] = arguments
    preparation = _submit_preparation(folders, settings) if todo and settings.preparation == "job" else ""
    # Runs that wait for no other are alike to Slurm: one array. A dependency is of a whole array, so others are single.
    alike = [folder for folder in todo if parents.get(folder) not in {*todo, *numbers}]
    for group in [alike, *([folder] for folder in todo if folder not in alike)]:
        if received or not group:
            continue
        # After any end: the weights of a parent may be final although a fine-tuning of it failed.
        after = [f"afterany:{numbers[parents[folder]]}" for folder in group if parents.get(folder) in numbers]
        after += [f"afterok:{preparation}"] if preparation else []
        jobs = [(worker(folder, todo[folder]), folder / job.EXIT) for folder in group]
        # Runs in other homes can have the same name.
        name = f"{group[0].name}-{digest(' '.join(map(str, group)))}"
        first = _sbatch(name, jobs, after, settings)
        for place, folder in enumerate(group):
            number = f"{first}_{place}" if len(group) > 1 else first
            job.write(folder, number, todo[folder], str(log_of(preparation)) if preparation else None)
            job.log(folder, number).unlink(missing_ok=True)
            job.log(folder, number).symlink_to(log_of(number))
            numbers[folder] = number
            to_stderr(f"{folder.name}: job {number}")
    return numbers


def _submit_preparation(folders: Mapping[Path, Sequence[str]], settings: SlurmLauncher) -> str:
    """The number of the job that prepares the data of the runs; empty if none is missing."""
    lacking = preparing.lacking(folders)
    if not lacking:
        return ""
    command = [(preparing.command(lacking), log_of("prepare").with_suffix(".exit"))]
    own = settings.model_copy(update={"sbatch": settings.preparation_sbatch or settings.sbatch})
    number = _sbatch("albert-lab-prepare", command, [], own, tasks="1")
    to_stderr(f"preparation of the text: job {number}, which writes {log_of(number)}")
    return number


def _joined(before: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """The arguments of a run's process that serves two commands; those of the later one if they cannot be combined."""
    tasks, earlier = tasks_in(arguments), tasks_in(before)
    if not tasks:
        return list(before)
    if not earlier or before[len(earlier) :] == arguments[len(tasks) :]:
        return [*dict.fromkeys([*earlier, *tasks]), *arguments[len(tasks) :]]
    return list(arguments)


def log_of(number: str) -> Path:
    """The output of a job; a link in the folder of its run leads to it."""
    return paths.home() / "slurm" / f"{number}.out"


def _sbatch(
    name: str,
    commands: Sequence[tuple[Sequence[str], Path]],
    after: Sequence[str],
    settings: SlurmLauncher,
    tasks: str = _ALL_TASKS,
) -> str:
    """Submit commands, each with the file for its exit code, and return the number of their job.

    Several are an array, of which at most settings.at_once run at a time.

    Args:
        after: dependencies on other jobs, as sbatch takes them.
    """
    for _, exit_file in commands:
        exit_file.unlink(missing_ok=True)
    is_array = len(commands) > 1
    # A second job of one name waits for the first; tasks of an array, which have one name, would wait for each other.
    dependencies = [*([] if is_array else ["singleton"]), *after]
    throttle = f"%{settings.at_once}" if settings.at_once else ""
    folder = log_of("").parent
    folder.mkdir(parents=True, exist_ok=True)
    options = [
        "--parsable",
        f"--job-name={name}",
        f"--output={str(folder).replace('%', '%%')}/{'%A_%a' if is_array else '%j'}.out",
        "--open-mode=append",
        "--requeue",
        *([f"--dependency={','.join(dependencies)}"] if dependencies else []),
        *([f"--array=0-{len(commands) - 1}{throttle}"] if is_array else []),
        "--kill-on-invalid-dep=yes",
        "--signal=B:USR1@120",
        *shlex.split(settings.sbatch),
    ]
    environment = {key: value for key, value in os.environ.items() if _is_passed_on(key)}
    environment |= allocator.environment() | {"ALBERT_LAB_HOME": str(paths.home()), "ALBERT_LAB_PLAIN_PROGRESS": "1"}
    script = SCRIPT.format(
        commands="\n".join(
            f"{place}) exit={shlex.quote(str(exit_file))}; set -- {shlex.join(command)} ;;"
            for place, (command, exit_file) in enumerate(commands)
        ),
        here=shlex.quote(os.getcwd()),
        exports="\n".join(f"export {key}={shlex.quote(value)}" for key, value in sorted(environment.items())),
        tasks=tasks,
    )
    # In the shell of a job, its own variables would reach the new job.
    outside = {key: value for key, value in os.environ.items() if not key.startswith(_OF_A_JOB)}
    try:
        done = subprocess.run(
            ["sbatch", *options], input=script, capture_output=True, text=True, check=False, env=outside
        )
    except FileNotFoundError as error:
        raise MissingDataError("no sbatch on the path: launcher=slurm needs the commands of Slurm") from error
    number = done.stdout.strip().split(";")[0]
    if done.returncode or not number:
        raise ConfigError(f"sbatch refused {shlex.join(options)}: {done.stderr.strip() or done.stdout.strip()}")
    return number


def _is_passed_on(variable: str) -> bool:
    """Whether a job gets a variable of this process even if the user's sbatch passes on none."""
    return variable == "PYTHONPATH" or (variable.startswith("ALBERT_LAB_") and variable not in _NOT_PASSED_ON)
