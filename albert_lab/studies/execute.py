"""The execution of a plan: the runs that it lacks are trained in child processes, and their failures are reported."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from albert_lab import errors, own_code, paths, storage
from albert_lab.errors import ConfigError
from albert_lab.machine import gpus, jobs_at_once
from albert_lab.messages import duration, to_stderr
from albert_lab.runs import finetunings, preparing, results
from albert_lab.runs import run as runs
from albert_lab.studies import jobs, slurm
from albert_lab.studies.jobs import LOCAL, Job, Launcher
from albert_lab.studies.plan import Plan
from albert_lab.studies.points import Point
from albert_lab.training.log import check_installed

SOME_FAILED = 3


@dataclass(frozen=True)
class Options:
    """How runs are trained, as on the command line; jobs is 0 for one a GPU."""

    jobs: int = 1
    launcher: Launcher = LOCAL

    @property
    def is_here(self) -> bool:
        return self.launcher.name == "local"


@dataclass
class Outcome:
    """The outcome of a plan: its exit code, and the reasons of failures by run."""

    code: int = 0
    failures: dict[str, str] = field(default_factory=dict)


def reset(plan: Plan, *, fresh: bool = False, retry_failed: bool = False) -> Plan:
    """The plan after runs were reset, so that they no longer count as finished or failed."""
    for item in plan.family.values():
        folder = item.run.folder
        if not item.is_existing:
            if fresh and runs.is_locked(folder):
                to_stderr(f"{item.title}: another process works on it, so --fresh leaves it as it is")
            elif fresh:
                storage.remove(folder)
            elif retry_failed and item.state == "failed":
                (folder / runs.FAILURE).unlink(missing_ok=True)
    return plan.updated()


def execute(plan: Plan, options: Options) -> Outcome:
    """Train every run of a plan that is not finished, in child processes, and say how each ended on stderr.

    Raises:
        DamagedFileError: the record of a run is damaged.
        ConfigError: a run needs a GPU or more memory than there is.
        MissingDataError: the package of a tracker is not installed.
    """
    for item in plan.family.values():
        results.read(item.run.folder)  # before anything is trained
    check_installed(plan.config.machine.report_to)
    to_stderr(f"runs: {len(plan.family)}, to train: {len(plan.to_train)}, failed before: {len(plan.failed)}")
    earlier = (failure for item in plan.failed.values() for failure in _failures(item).items())
    outcome = Outcome(failures={name: f"{reason} (--retry-failed resumes it)" for name, reason in earlier})
    if plan.to_train:
        if options.is_here:
            _check_here(plan.to_train)
            preparing.prepare_all((item.run for item in plan.to_train if item.run.name in plan.to_pretrain), to_stderr)
        _launch(plan.to_train, options, outcome)
    if outcome.failures and not outcome.code:
        is_any_done = any(item.again().state == "done" for item in plan.points)
        outcome.code = SOME_FAILED if is_any_done else 1
    return outcome


def _failures(item: Point) -> dict[str, str]:
    if item.pretraining == "failed":
        return {item.run.name: runs.failure_in(item.run.folder / runs.FAILURE)}
    reasons = finetunings.failures(item.missing)
    return {f"{item.run.name}, {name}": reason for name, reason in reasons.items()}


def _check_here(todo: Sequence[Point]) -> None:
    """Check that runs can be trained on this machine; raises ConfigError (see execute)."""
    from albert_lab.training.device import check_memory

    if any(item.run.config.machine.device == "cuda" for item in todo) and not gpus():
        raise ConfigError("machine.device=cuda: torch finds no GPU on this machine (allowed: auto, cpu)")
    for item in todo:
        try:
            check_memory(item.run.config)
        except ConfigError as error:
            raise ConfigError(f"{item.title}: {error}") from error


def jobs_of(todo: Sequence[Point]) -> list[Job]:
    """What a launcher needs to know of runs."""
    folders = {item.run.folder for item in todo}
    found = []
    for item in todo:
        seeds = ["--seeds", *map(str, item.seeds)] if item.tasks and item.seeds else []
        random = ["--with-random"] if item.tasks and item.with_random else []
        own = [*own_code.options(), *(f"--conf={folder}" for folder in paths.own_conf)]
        parent = item.parent.run.folder if item.parent else None
        processes = item.run.config.machine.processes if item.lacks_pretraining else 1
        arguments = (*item.tasks.values(), *seeds, *random, *own)
        found.append(Job(item.run.folder, arguments, parent if parent in folders else None, processes))
    return found


def _launch(todo: Sequence[Point], options: Options, outcome: Outcome) -> None:
    items = {runs.create(item.run): item for item in todo}
    planned = jobs_of(todo)
    if not options.is_here:
        unprepared = preparing.lacking(item.run for item in todo)
        if options.launcher.name == "slurm":
            slurm.submit(planned, unprepared, options.launcher)
        else:
            jobs.print_commands(planned, unprepared)
        return
    started, ended = time.monotonic(), itertools.count(1)

    def on_end(job: Job, code: int) -> bool:
        if code in (errors.STOPPED, errors.INTERRUPTED):
            return True
        if code == errors.UNWRITTEN:
            to_stderr("no further run is started; the same command goes on when there is room")
            return False
        item = items[job.folder].again()
        name, place = item.run.name, f"[{next(ended)}/{len(items)}] {item.title}"
        failed = _failures(item)
        if not failed and item.state != "done":
            failed = {name: _describe_exit(code)}
        outcome.failures |= failed
        for failing, reason in failed.items():
            to_stderr(f"{place}{failing.removeprefix(name)}: FAILED: {reason}")
        if not failed:
            to_stderr(f"{place}: done after {duration(time.monotonic() - started)} in all")
        return True

    at_once = jobs_at_once(options.jobs, max(item.run.config.machine.processes for item in todo))
    if at_once > 1 and any(item.run.config.budget.unit == "seconds" for item in todo):
        to_stderr("a budget in seconds: runs are trained one at a time, despite --jobs, since others would slow them")
        at_once = 1
    code = jobs.launch(planned, at_once, on_end)
    outcome.code = 1 if code == errors.UNWRITTEN else code


def _describe_exit(code: int) -> str:
    if code < 0:
        return f"its process was killed by signal {-code} (9 may mean out of memory); the same command resumes it"
    return f"its process ended with exit code {code}; see its output in the log"
