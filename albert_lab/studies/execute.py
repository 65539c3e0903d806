"""The execution of a plan: the runs that it lacks are trained as child processes or as jobs of
Slurm.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from albert_lab import paths
from albert_lab.machine import gpus_of_jobs
from albert_lab.messages import duration, to_stderr
from albert_lab.runs import finetunings, preparing, results
from albert_lab.runs import run as runs
from albert_lab.studies import prices, study
from albert_lab.studies.children import launch
from albert_lab.studies.jobs import Job, Options, jobs_of
from albert_lab.studies.plan import Plan, Point, look
from albert_lab.studies.slurm import submit
from albert_lab.tasks.task import SPLITS

SOME_FAILED = 3


@dataclass
class Outcome:
    """The outcome of a plan: its exit code, the reasons of failures by run, and the exit codes of
    their processes.
    """

    code: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    codes: set[int] = field(default_factory=set)


def execute(plan: Plan, options: Options, on_timed: Callable[[], None] = lambda: None) -> Outcome:
    """Train every run of a plan that is not finished, in child processes, and say how each ended on
    stderr.

    Args:
        on_timed: called before the first run, when prices are known by its own steps.

    Raises:
        DamagedFileError: the record of a run is damaged.
        ConfigError: a run needs a GPU or more memory than there is, or a task's file cannot be
            used, or files of the user are where the report belongs.
    """
    from albert_lab.training.device import check_memory, choose_device

    for point in plan.family.values():
        results.read(point.run.folder, point.run.name)  # before anything is trained
    points = plan.to_train
    to_stderr(f"runs: {len(plan.family)}, to train: {len(points)}")
    if not points:
        return Outcome()
    pictures = (f"{figure}.png" for figure in plan.experiment.figures)
    study.check_free(plan.report_folder, (study.EXPERIMENT, *study.TEXTS, *pictures))
    _check_tasks(points)
    at_once = 1
    if options.is_here:
        for point in points:
            choose_device(point.config.machine.device)
            check_memory(point.config)
        at_once = _runs_at_a_time(points, options)
        prices.time_steps(points, at_once)
        on_timed()
        lacking = (point.run for point in points if point.lacks_pretraining)
        preparing.prepare_all(lacking, to_stderr)
    study.begin(plan)
    for point in points:
        (runs.create(point.run) / runs.FAILURE).unlink(missing_ok=True)
    outcome = Outcome()
    jobs = jobs_of(points)
    if options.is_here:
        outcome.code = launch(jobs, at_once, _on_end(points, outcome))
    else:
        submit(jobs, options)
    if outcome.failures and not outcome.code:
        outcome.code = _code_of_failures(plan, outcome)
    return outcome


def _check_tasks(points: Sequence[Point]) -> None:
    """Raise ConfigError for a task's file that cannot be used now, and not after the training."""
    tasks = {tuning.task.name: tuning.task for point in points for tuning in point.missing}
    for task, split in itertools.product(tasks.values(), SPLITS):
        _, issues = task.read(paths.tasks_data(), split)
        if issues:
            to_stderr(f"warning: {task.name}, examples of {split}: {issues}")


def _code_of_failures(plan: Plan, outcome: Outcome) -> int:
    """The exit code of a study of which runs failed."""
    if any(look(point).state == "done" for point in plan.points):
        return SOME_FAILED
    return max(outcome.codes) if outcome.codes <= {2, 4} else 1


def _runs_at_a_time(points: Sequence[Point], options: Options) -> int:
    """How many runs to train at a time: one, if a budget is in seconds, else as --jobs asks."""
    jobs = 1 if options.jobs is None else options.jobs
    processes = max(point.config.machine.processes for point in points)
    at_once = len(gpus_of_jobs(jobs, processes))
    if at_once > 1 and any(point.config.budget.unit == "seconds" for point in points):
        to_stderr(
            "a budget in seconds: runs are trained one at a time, despite --jobs, since others "
            "would slow them"
        )
        return 1
    return at_once


def _on_end(points: Sequence[Point], outcome: Outcome) -> Callable[[Job, int], None]:
    """A function that says how a run ended, and adds its failures to the outcome."""
    by_folder = {point.run.folder: point for point in points}
    started = time.monotonic()
    numbers = itertools.count(1)

    def on_end(job: Job, code: int) -> None:
        point = look(by_folder[job.folder])
        place = f"[{next(numbers)}/{len(points)}] {point.title}"
        failures = _failures(point, code)
        for name, reason in failures.items():
            part = name.removeprefix(point.run.name)
            to_stderr(f"{place}{part}: FAILED: {reason}")
            outcome.failures[name] = reason
            outcome.codes.add(code)
        if not failures:
            to_stderr(f"{place}: done after {duration(time.monotonic() - started)} in all")

    return on_end


def _failures(point: Point, code: int) -> dict[str, str]:
    """Why a run or its fine-tunings failed, by their names; empty if all is done.

    Args:
        code: the exit code of its process, which matters if it left no reason.
    """
    name = point.run.name
    mark = point.run.folder / runs.FAILURE
    if mark.exists():
        return {name: runs.failure_in(mark)}
    failures = finetunings.failures(point.missing)
    if failures:
        return {f"{name}, {tuning}": reason for tuning, reason in failures.items()}
    if point.state == "done":
        return {}
    return {
        name: f"exit code {code} (-9 and 137 may mean out of memory); the same command resumes it"
    }
