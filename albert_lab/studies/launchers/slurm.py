"""Runs as jobs of Slurm, one job per run; uses only sbatch, squeue and scancel."""

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from albert_lab import allocator, paths, signals, squeue
from albert_lab.config.launcher import SlurmLauncher
from albert_lab.config.schema import digest
from albert_lab.errors import STOPPED, ConfigError, MissingDataError
from albert_lab.messages import to_stderr
from albert_lab.runs import job, preparing, states
from albert_lab.studies.launchers.base import LOST, NOT_AWAITED, PARENT_FAILED, in_order
from albert_lab.studies.launchers.by_hand import worker

# Slurm sends USR1 before the time limit (--signal), only to the shell: save a checkpoint and requeue. scancel and
# preemption send TERM: save a checkpoint and exit; Slurm itself requeues preempted jobs, but no cancelled ones.
#
# If the options ask for several tasks, srun starts one process in each, and these make the run together. TERM to srun
# would kill them, so scancel signals them. The exit code is that of the first process.
SCRIPT = """#!/bin/bash
near_limit= asked= child=
tasks={tasks}
make() {{
  if [ "$tasks" -le 1 ]; then exec {command}; fi
  trap '' TERM INT USR1
  export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
  [ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
  rm -f {exit}.first
  srun --ntasks="$tasks" --kill-on-bad-exit=0 --wait=0 --mpi=none bash -c '
    trap : TERM INT
    "$@" & child=$!
    while kill -0 $child 2>/dev/null; do wait $child; done
    wait $child; code=$?
    [ "$SLURM_PROCID" != 0 ] || echo $code > "$0"
    exit $code' {exit}.first {command}
  code=$?
  [ ! -s {exit}.first ] || code=$(cat {exit}.first)
  rm -f {exit}.first
  exit $code
}}
stop() {{
  asked=1
  if [ "$tasks" -gt 1 ]; then scancel --quiet --signal=TERM "$SLURM_JOB_ID"; return; fi
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}}
trap 'near_limit=1; stop' USR1
trap 'near_limit=; stop' TERM INT
rm -f {exit}
cd {here}
{exports}
make &
child=$!
[ -z "$asked" ] || stop
while kill -0 "$child" 2>/dev/null; do wait "$child"; done
wait "$child"; code=$?
# Asked to stop while it started: there is nothing to save yet.
[ $code = 143 ] && [ -n "$asked" ] && code=75
if [ $code = 75 ] && [ -n "$near_limit" ]; then
  echo "the time limit is near: back into the queue"
  scontrol requeue "$SLURM_JOB_ID" && exit 75
  echo "it could not be requeued: the same command submits it again"
fi
echo $code > {exit}
exit $code
"""
_NOT_PASSED_ON = ("ALBERT_LAB_THREADS", signals.PARENT)
_NAP_SECONDS = 0.2
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
            _say_how_to_end(numbers.values())
            return signals.code_of(received[0])
        if detach:
            to_stderr(f"{len(numbers)} in the queue; the same command without --detach waits for them")
            return NOT_AWAITED
        return _Watch(numbers, settings, parents, on_end, received).until_the_end()


def _submit_all(
    folders: Mapping[Path, Sequence[str]],
    settings: SlurmLauncher,
    parents: Mapping[Path, Path],
    received: Sequence[int],
) -> dict[Path, str]:
    """The job of each run, parents first: the one in the queue, or a new one."""
    queue = squeue.jobs()
    if queue is None:
        to_stderr("squeue does not answer: a run may be in the queue already; its second job waits for the first one")
    numbers: dict[Path, str] = {}
    preparation: str | None = None
    for folder in in_order(folders, parents):
        if received:
            break
        known, words = job.read(folder), list(folders[folder])
        if known and known.job in (queue or {}):
            words = _joined(known.words, words)
            if words == known.words:
                numbers[folder] = known.job
                to_stderr(f"{folder.name}: {(queue or {})[known.job].words}")
                continue
        if settings.preparation == "job" and preparation is None:
            preparation = _submit_preparation(folders, settings)
        after = [numbers[parents[folder]]] if parents.get(folder) in numbers else []
        number = _sbatch(
            f"{folder.name}-{digest(str(folder))}",  # runs in other homes can have the same name
            folder / "slurm-%j.out",
            folder / job.EXIT,
            worker(folder, words),
            [*after, *([preparation] if preparation else [])],
            settings.words,
        )
        job.write(folder, number, words, str(_preparation_log(preparation)) if preparation else None)
        numbers[folder] = number
        to_stderr(f"{folder.name}: job {number}")
    return numbers


def _submit_preparation(folders: Mapping[Path, Sequence[str]], settings: SlurmLauncher) -> str:
    """The number of the job that prepares the data of the runs; empty if none is missing."""
    lacking = preparing.lacking(folders)
    if not lacking:
        return ""
    tasks = dict.fromkeys(word for folder in folders for word in _tasks(folders[folder]))
    log = _preparation_log("%j")
    log.parent.mkdir(parents=True, exist_ok=True)
    number = _sbatch(
        "albert-lab-prepare",
        log,
        log.with_name("prepare.exit"),
        preparing.command(lacking, tasks),
        [],
        settings.preparation_words or settings.words,
        tasks="1",
    )
    to_stderr(f"preparation of the text: job {number}, which writes {_preparation_log(number)}")
    return number


def _tasks(words: Sequence[str]) -> list[str]:
    """The tasks among the arguments of a run's process, which come first."""
    options = [index for index, word in enumerate(words) if word.startswith("--")]
    return list(words[: options[0]] if options else words)


def _joined(before: Sequence[str], words: Sequence[str]) -> list[str]:
    """The arguments of a run's process that serves two commands; those of the later one if they cannot be combined."""
    tasks, earlier = _tasks(words), _tasks(before)
    if not tasks:
        return list(before)
    if not earlier or before[len(earlier) :] == words[len(tasks) :]:
        return [*dict.fromkeys([*earlier, *tasks]), *words[len(tasks) :]]
    return list(words)


def _preparation_log(number: str) -> Path:
    return paths.home() / "slurm" / f"prepare-{number}.out"


def _sbatch(
    name: str,
    log: Path,
    exit_file: Path,
    command: Sequence[str],
    after: Sequence[str],
    words: str,
    tasks: str = _ALL_TASKS,
) -> str:
    """Submit a command and return the number of its job."""
    exit_file.unlink(missing_ok=True)
    dependency = ",".join(["singleton", *(f"afterok:{number}" for number in after)])
    options = [
        "--parsable",
        f"--job-name={name}",
        f"--output={str(log.parent).replace('%', '%%')}/{log.name}",
        "--open-mode=append",
        "--requeue",
        f"--dependency={dependency}",
        "--kill-on-invalid-dep=yes",
        "--signal=B:USR1@120",
        *shlex.split(words),
    ]
    environment = {key: value for key, value in os.environ.items() if _is_passed_on(key)}
    environment |= allocator.environment() | {"ALBERT_LAB_HOME": str(paths.home()), "ALBERT_LAB_PLAIN_PROGRESS": "1"}
    script = SCRIPT.format(
        exit=shlex.quote(str(exit_file)),
        here=shlex.quote(os.getcwd()),
        exports="\n".join(f"export {key}={shlex.quote(value)}" for key, value in sorted(environment.items())),
        command=shlex.join(command),
        tasks=tasks,
    )
    try:
        found = subprocess.run(["sbatch", *options], input=script, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise MissingDataError("no sbatch on the path: launcher=slurm needs the commands of Slurm") from error
    number = found.stdout.strip().split(";")[0]
    if found.returncode or not number:
        raise ConfigError(f"sbatch refused {shlex.join(options)}: {found.stderr.strip() or found.stdout.strip()}")
    return number


def _is_passed_on(variable: str) -> bool:
    """Whether a job gets a variable of this process even if the user's sbatch passes on none."""
    return variable == "PYTHONPATH" or (variable.startswith("ALBERT_LAB_") and variable not in _NOT_PASSED_ON)


class _Watch:
    """The jobs of a study, watched until all of them have ended."""

    def __init__(
        self,
        numbers: Mapping[Path, str],
        settings: SlurmLauncher,
        parents: Mapping[Path, Path],
        on_end: Callable[[Path, int], bool],
        received: Sequence[int],
    ) -> None:
        self._numbers = dict(numbers)
        self._seconds = settings.poll_seconds
        self._parents = parents
        self._on_end = on_end
        self._received = received
        self._failed: set[Path] = set()
        self._gone: set[Path] = set()  # not in the queue at the last poll, and no exit code yet
        self._said: dict[Path, str] = {}
        self._code = 0
        self._is_cancelled = False
        self._is_answered = True

    def until_the_end(self) -> int:
        to_stderr(f"waiting for {len(self._numbers)} in the queue; Ctrl-C ends the waiting and leaves them")
        while self._numbers and not self._received:
            self._nap()
            queue = squeue.jobs()
            if (queue is not None) != self._is_answered:
                self._is_answered = queue is not None
                to_stderr("squeue answers again" if queue is not None else "squeue does not answer: the jobs continue")
            if queue is not None and not self._received:
                for folder, number in list(self._numbers.items()):
                    self._look(folder, queue.get(number))
        if self._received:
            _say_how_to_end(self._numbers.values())
            return signals.code_of(self._received[0])
        return self._code

    def _nap(self) -> None:
        until = time.monotonic() + self._seconds
        while time.monotonic() < until and not self._received:
            time.sleep(min(_NAP_SECONDS, self._seconds))

    def _look(self, folder: Path, found: squeue.Job | None) -> None:
        if found:
            self._gone.discard(folder)
            if self._said.get(folder) != found.words:
                self._said[folder] = found.words
                to_stderr(f"{folder.name}: {found.words}")
            return
        code = self._code_of(folder)
        # A shared file system may show what a job wrote a little later than the queue shows its end.
        if code is None and folder not in self._gone:
            self._gone.add(folder)
            return
        if code is None and self._parents.get(folder) in self._numbers:
            return  # it ends as its parent does
        self._end(folder, LOST if code is None else code)

    def _code_of(self, folder: Path) -> int | None:
        os.listdir(folder)  # makes a network file system look again
        if self._parents.get(folder) in self._failed and not job.log(folder, self._numbers[folder]).exists():
            return PARENT_FAILED
        code = job.exit_code(folder)
        return 0 if code is None and states.state(folder) == "done" else code

    def _end(self, folder: Path, code: int) -> None:
        number = self._numbers.pop(folder)
        if code:
            self._failed.add(folder)
        if code == LOST and job.was_stopped(folder) and job.log(folder, number).exists():
            to_stderr(f"{folder.name}: {job.died(folder)}")
            code = STOPPED
        if code == LOST and not job.log(folder, number).exists():
            if self._is_cancelled:
                return
            submitted = job.read(folder)
            if not (submitted and submitted.preparation):
                to_stderr(f"{folder.name}: {job.died(folder)}")
                code = STOPPED  # by scancel; job.died() reports any other reason
        if code == STOPPED:
            self._code = STOPPED
            to_stderr(f"{folder.name}: stopped; the same command resumes it")
        if not self._on_end(folder, code) and not self._is_cancelled:
            self._is_cancelled = True
            self._cancel_waiting()

    def _cancel_waiting(self) -> None:
        if self._numbers:
            subprocess.run(["scancel", "--state=PENDING", *self._numbers.values()], check=False)


def _say_how_to_end(numbers: Iterable[str]) -> None:
    given = list(numbers)
    if given:
        ends = f"scancel {' '.join(given)}"
        to_stderr(f"the jobs continue, and the same command waits for them again; to end them: {ends}")
