"""The execution of a plan: the runs that it lacks are trained as child processes or as jobs of Slurm, or by hand."""

import itertools
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from albert_lab import machine, own_code, paths, signals
from albert_lab.errors import INTERRUPTED, STOPPED, UNWRITTEN, ConfigError
from albert_lab.machine import ALLOCATOR, cores, gpus, gpus_of_jobs
from albert_lab.messages import duration, to_stderr
from albert_lab.runs import finetunings, preparing, results, states
from albert_lab.runs import run as runs
from albert_lab.storage import write_atomically
from albert_lab.studies import study
from albert_lab.studies.plan import Plan, Point
from albert_lab.tasks.task import SPLITS
from albert_lab.training.log import check_installed

SOME_FAILED = 3
_PATIENT = ("env", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=3600", sys.executable)  # torchrun kills 30 s after a stop
# Slurm sends USR1 before the time limit (--signal), only to the shell: save a checkpoint and requeue. scancel and
# preemption send TERM: save a checkpoint and exit; Slurm itself requeues preempted jobs, but no cancelled ones.
# Of an option that is given twice the last counts, so the user's cannot replace those that find jobs and parents.
SCRIPT = """#!/bin/bash
#SBATCH --open-mode=append --requeue --kill-on-invalid-dep=yes --signal=B:USR1@120
#SBATCH {options}
#SBATCH --job-name={name}
#SBATCH --array=0-{last}{throttle}
#SBATCH --output={log}
cd {here}
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


@dataclass(frozen=True)
class Options:
    """How runs are trained, as on the command line.

    jobs is the number of runs at a time, 0 for one a GPU; None: one here, and of Slurm as many as it starts. slurm has
    the options of sbatch, None without Slurm; with by_hand, command lines are only printed.
    """

    jobs: int | None = None
    slurm: str | None = None
    by_hand: bool = False

    @property
    def is_here(self) -> bool:
        return self.slurm is None and not self.by_hand


class Job(NamedTuple):
    """A run to train: its folder, its command, and the folder of the run it starts from, if that is trained too."""

    folder: Path
    command: list[str]
    parent: Path | None = None


@dataclass
class Outcome:
    """The outcome of a plan: its exit code, the reasons of failures by run, and the exit codes of their processes."""

    code: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    codes: set[int] = field(default_factory=set)


def execute(plan: Plan, options: Options) -> Outcome:
    """Train every run of a plan that is not finished, in child processes, and say how each ended on stderr.

    Raises:
        DamagedFileError: the record of a run is damaged.
        ConfigError: a run needs a GPU or more memory than there is, or a task's file cannot be used.
        MissingDataError: the package of a tracker is not installed.
    """
    for item in plan.family.values():
        results.read(item.run.folder)  # before anything is trained
    check_installed(plan.config.machine.report_to)
    todo = plan.to_train
    to_stderr(f"runs: {len(plan.family)}, to train: {len(todo)}")
    if not todo:
        return Outcome()
    for task in {of.task.name: of.task for item in todo for of in item.missing}.values():
        for split in SPLITS:  # a file that cannot be used is found now, not after the training
            if issues := task.read(paths.tasks_data(), split)[1]:
                to_stderr(f"warning: {task.name}, examples of {split} that are left out: {issues}")
    if options.is_here:
        from albert_lab.training.device import check_memory

        if any(item.config.machine.device == "cuda" for item in todo) and not gpus():
            raise ConfigError("machine.device=cuda: torch finds no GPU on this machine (allowed: auto, cpu)")
        for item in todo:
            check_memory(item.config)
        preparing.prepare_all((item.run for item in todo if item.lacks_pretraining), to_stderr)
    study.begin(plan)
    outcome = _train(todo, options)
    if outcome.failures and not outcome.code:
        is_any_done = any(item.again().state == "done" for item in plan.points)
        outcome.code = SOME_FAILED if is_any_done else max(outcome.codes) if outcome.codes <= {2, 4} else 1
    return outcome


def jobs_of(todo: Sequence[Point]) -> list[Job]:
    """The jobs that train runs, by torchrun where several processes do it together, and then fine-tune them."""
    folders, found = {item.run.folder for item in todo}, []
    for item in todo:
        processes = item.config.machine.processes if item.lacks_pretraining else 1
        torchrun = [*_PATIENT, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [*(torchrun if processes > 1 else [sys.executable]), "-m", "albert_lab.runs.worker"]
        command += [str(item.run.folder), *item.tasks.values()]
        command += ["--seeds", *map(str, item.seeds)] if item.tasks and item.seeds else []
        command += ["--with-random"] if item.tasks and item.with_random else []
        command += [*own_code.options(), *(f"--conf={folder}" for folder in paths.own_conf)]
        parent = item.parent.run.folder if item.parent else None
        found.append(Job(item.run.folder, command, parent if parent in folders else None))
    return found


def _train(todo: Sequence[Point], options: Options) -> Outcome:
    items, planned, outcome = {runs.create(item.run): item for item in todo}, jobs_of(todo), Outcome()
    for folder in items:
        (folder / runs.FAILURE).unlink(missing_ok=True)
    if not options.is_here:
        unprepared = preparing.lacking(item.run for item in todo)
        if options.by_hand:
            print_commands(planned, unprepared)
        else:
            submit(planned, unprepared, options)
        return outcome
    started, ended = time.monotonic(), itertools.count(1)

    def on_end(job: Job, code: int) -> None:
        item = items[job.folder].again()
        name, place = item.run.name, f"[{next(ended)}/{len(items)}] {item.title}"
        failed = {f"{name}, {task}": reason for task, reason in finetunings.failures(item.missing).items()}
        if (mark := item.run.folder / runs.FAILURE).exists():
            failed = {name: runs.failure_in(mark)}
        elif not failed and item.state != "done":
            failed = {name: f"exit code {code} (-9 may mean out of memory); the same command resumes it"}
        outcome.failures |= failed
        for failing, reason in failed.items():
            outcome.codes.add(code)
            to_stderr(f"{place}{failing.removeprefix(name)}: FAILED: {reason}")
        if not failed:
            to_stderr(f"{place}: done after {duration(time.monotonic() - started)} in all")

    asked = 1 if options.jobs is None else options.jobs
    at_once = len(gpus_of_jobs(asked, max(item.config.machine.processes for item in todo)))
    if at_once > 1 and any(item.config.budget.unit == "seconds" for item in todo):
        to_stderr("a budget in seconds: runs are trained one at a time, despite --jobs, since others would slow them")
        at_once = 1
    outcome.code = launch(planned, at_once, on_end)
    return outcome


def launch(jobs: Sequence[Job], at_once: int, on_end: Callable[[Job, int], None]) -> int:
    """Train runs in child processes, at most `at_once` at a time, which divide cores and GPUs among them.

    After SIGINT or SIGTERM the children get SIGTERM, so that they save a checkpoint and end.

    Args:
        jobs: the runs; one that starts from another of them waits for it.
        on_end: called with a run that was not stopped and the exit code of its process, or minus the number of the
            signal that killed it.

    Returns:
        0, or the code of an incomplete study: 130 after Ctrl-C, 75 after SIGTERM, sent to this process or to a run's,
        74 if a run could not write, after which no further one is started.
    """
    waiting, code_of_study, is_told = list(jobs), 0, False
    running: dict[Path, tuple[Job, subprocess.Popen[Any], int]] = {}
    visible = gpus_of_jobs(at_once) if at_once > 1 else [[]]
    environment = {key: value for key, value in os.environ.items() if key not in machine.RANK}  # of another program
    environment = ALLOCATOR | environment  # the user's settings win
    environment |= {"ALBERT_LAB_THREADS": str(max(1, cores() // at_once)), "ALBERT_LAB_JOBS": str(at_once)}
    streams: Any = {"stdin": subprocess.DEVNULL, "stdout": sys.stderr, "stderr": sys.stderr}
    with signals.deferred() as received:
        while running or (waiting and not received):
            awaited = {*running, *(job.folder for job in waiting)}
            for job in [job for job in waiting if job.parent not in awaited]:
                if received or len(running) == at_once:
                    break
                waiting.remove(job)
                if job.parent and not runs.is_trained(job.parent):
                    continue  # its parent did not finish
                slot = min(set(range(at_once)) - {slot for _, _, slot in running.values()})
                own = {"CUDA_VISIBLE_DEVICES": ",".join(visible[slot])} if visible[slot] else {}
                # A group of its own: Ctrl-C in the terminal reaches this process alone.
                child = subprocess.Popen(job.command, env=environment | own, process_group=0, **streams)
                running[job.folder] = job, child, slot
            if received and not is_told:
                is_told = True
                for _, child, _ in running.values():
                    child.terminate()
            for job, child, _ in list(running.values()):
                if (code := child.poll()) is not None:
                    del running[job.folder]
                    if -code in signals.NUMBERS or (code and received):
                        code = STOPPED
                    if code in (STOPPED, INTERRUPTED, UNWRITTEN):
                        code_of_study = code
                    else:
                        on_end(job, code)
                    if code == UNWRITTEN:
                        waiting.clear()
            time.sleep(0.1)
    return signals.exit_code() or code_of_study


def print_commands(jobs: Sequence[Job], unprepared: Sequence[runs.Run]) -> None:
    """Print one line per run on stdout, after one that prepares data, if any is missing; nothing is started."""
    own = [f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith("ALBERT_LAB_")]
    here = f"cd {shlex.quote(os.getcwd())} && {shlex.join(['env', *own]) + ' ' if own else ''}"
    for command in preparing.commands(unprepared) if unprepared else ():
        print(f"# first, and alone:\n{here}{shlex.join(command)}")
    for job in jobs:
        after = f"# after the line of {job.parent.name}:\n" if job.parent else ""
        print(f"{after}{here}{shlex.join(job.command)}", flush=True)


def scripts(jobs: Sequence[Job], unprepared: Sequence[runs.Run], how: Options) -> Iterator[tuple[Path, str, list[Job]]]:
    """Scripts for sbatch: the file and the text of each, and the runs that its tasks train.

    The first prepares text, vocabulary and floors, if any are missing, and trains none. Then there is one for each
    generation of runs: those that start from no other of them, those that start from these, and so on.
    """
    depth: dict[Path | None, int] = {None: -1}  # a parent that is none of these is in the queue
    generations: dict[int, list[Job]] = {}
    for job in jobs:
        depth[job.folder] = depth.get(job.parent, 0) + 1
        generations.setdefault(depth[job.folder], []).append(job)
    arrays = [(f"{of[0].folder.name}-{at}", of, [job.command for job in of]) for at, of in sorted(generations.items())]
    if arrays and unprepared:
        arrays.insert(0, ("prepare", [], preparing.commands(unprepared)))
    folder = paths.home() / "slurm"
    for name, of, commands in arrays:
        text = SCRIPT.format(
            name=name,
            last=len(commands) - 1,
            throttle=f"%{how.jobs}" if how.jobs else "",
            log=shlex.quote(str(folder).replace("%", "%%") + "/%A_%a.out"),
            options=how.slurm,
            here=shlex.quote(os.getcwd()),
            lines="\n".join(shlex.quote(shlex.join(command)) for command in commands),
            requeue="1" if of else "",  # half a preparation is worth nothing
        )
        yield folder / f"{name}.sh", text, of


def submit(jobs: Sequence[Job], unprepared: Sequence[runs.Run], how: Options) -> None:
    """Submit the runs that are not in the queue, and return.

    Raises:
        MissingDataError: squeue does not answer.
        ConfigError: sbatch refuses a script.
    """
    numbers, prepared = states.queued(job.folder for job in jobs), list[str]()
    jobs = [job for job in jobs if job.folder not in numbers]
    with signals.deferred():  # no job without its number in the folders of its runs
        for file, text, of in scripts(jobs, unprepared, how):
            write_atomically(file, text)
            # After any end: the weights of a parent may be final although a fine-tuning of it failed.
            parents = {numbers[job.parent].partition("_")[0] for job in of if job.parent in numbers}
            number = _sbatch(file, [*prepared, *(f"afterany:{parent}" for parent in sorted(parents))])
            prepared = prepared if of else [f"afterok:{number}"]
            for place, job in enumerate(of):
                numbers[job.folder] = f"{number}_{place}"
                write_atomically(job.folder / states.JOB, numbers[job.folder])
            to_stderr(f"job {number}: {len(of) or 'prepares text, before'} runs ({file})")
    to_stderr(f"runs in the queue: {len(numbers)}; the same command, later, submits what is missing or reports")


def _sbatch(file: Path, after: Sequence[str]) -> str:
    """The number of the job that sbatch makes of a script."""
    # sbatch passes it on; in the shell of a job, that one's own variables would reach the new job.
    outside = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_") or key == "SLURM_CONF"}
    command = ["sbatch", "--parsable", *([f"--dependency={','.join(after)}"] if after else []), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ALLOCATOR | outside)
    if done.returncode:
        raise ConfigError(f"sbatch refused {file}: {done.stderr.strip()}; correct the options of --slurm")
    return done.stdout.strip().split(";")[0]
