"""Sweeps: the selected runs are made in child processes, and their failures are reported."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from albert_lab import errors, in_use, paths
from albert_lab.config.launcher import LOCAL, LauncherConfig, LocalLauncher, SlurmLauncher
from albert_lab.machine import jobs_at_once
from albert_lab.messages import to_stderr
from albert_lab.runs import finetunings, job, preparing, regime, results, states
from albert_lab.runs import run as runs
from albert_lab.studies import graph, launchers, selection, workload
from albert_lab.studies.launchers.base import LOST, NOT_AWAITED, PARENT_FAILED
from albert_lab.studies.planning import PlannedPoint, family

SOME_FAILED = 3


@dataclass(frozen=True)
class Options:
    """The options of a sweep, as on the command line; jobs may be machine.AUTO_JOBS."""

    jobs: int = 1
    fail_fast: bool = False
    launcher: LauncherConfig = LOCAL
    detach: bool = False

    @property
    def is_here(self) -> bool:
        """Whether runs are made on this machine."""
        return isinstance(self.launcher, LocalLauncher)

    @property
    def prepares_here(self) -> bool:
        """Whether this process prepares the data of the runs."""
        return isinstance(self.launcher, LocalLauncher) or self.launcher.preparation == "here"


@dataclass
class Outcome:
    """The outcome of a sweep: its exit code, whether runs continue on their own, and the reasons of failures by run."""

    code: int = 0
    is_left: bool = False
    failures: dict[str, str] = field(default_factory=dict)


def execute(planned: Sequence[PlannedPoint], options: Options) -> Outcome:
    """Train every run that is not finished, in child processes, and report how each ended on stderr.

    Fine-tunings that failed for a reason that the user can fix are made again.

    Raises: see selection.select() and selection.check_here().
    """
    in_use.mark(paths.runs())
    for folder in family(planned):
        finetunings.forget_failures(folder, fixable_only=True)
    selected = selection.select(planned)
    outcome = Outcome(failures=selected.failures)
    todo = selected.todo
    if todo:
        for warning in regime.too_small(item.run.config for item in todo):
            to_stderr(warning)
        if options.is_here:
            selection.check_here(todo)
        for item in selected.freed:  # its fine-tunings are kept
            to_stderr(f"{item.run.name} runs again: its weights were freed, and an unfinished run starts from them")
            (item.run.folder / results.RECORD).unlink()
        if options.prepares_here:
            preparing.prepare_all((item.run for item in todo if states.state(item.run.folder) != "done"), to_stderr)
        _launch(todo, options, outcome)
    if outcome.failures and not outcome.code:
        is_any_done = any(item.state in states.FINISHED for item in planned)
        outcome.code = SOME_FAILED if is_any_done else 1
    for name, error in outcome.failures.items():
        to_stderr(f"FAILED {name}: {error}")
    return outcome


def _launch(todo: Sequence[PlannedPoint], options: Options, outcome: Outcome) -> None:
    items = {runs.create(item.run): item for item in todo}
    started = time.monotonic()
    ended = 0

    def on_end(folder: Path, code: int) -> bool:
        nonlocal ended
        ended += 1
        item, place = items[folder], f"[{ended}/{len(items)}]"
        if code in (errors.STOPPED, errors.INTERRUPTED):
            return True
        is_orphan = code == PARENT_FAILED
        failed = {item.run.name: graph.orphaned(item.run, outcome.failures)} if is_orphan else item.failures
        if not failed and item.state != "done":
            failed = {item.run.name: (None if options.is_here else job.died(folder)) or _describe_exit(code)}
        outcome.failures |= failed
        for name, reason in failed.items():
            to_stderr(f"{place} {name}: FAILED: {reason}")
        if not failed:
            to_stderr(f"{place} {item.run.name}: done after {time.monotonic() - started:,.0f} s in all")
        return not (failed and options.fail_fast)

    # With a budget in seconds, a second run would slow the first: one run at a time.
    is_timed = any(item.run.config.budget.unit == "seconds" for item in todo)
    asked = jobs_at_once(options.jobs, max(item.run.config.machine.processes for item in todo))
    jobs = 1 if is_timed else asked
    if jobs < asked:
        to_stderr("a budget in seconds: runs are made one at a time, despite --jobs")
    if is_timed and isinstance(options.launcher, SlurmLauncher) and "--exclusive" not in options.launcher.words:
        to_stderr("a budget in seconds: without --exclusive, other jobs on the node slow the runs")
    words = {folder: _words(item) for folder, item in items.items()}
    if options.is_here:
        for folder in items:
            job.forget(folder)
        works = [workload.of(item.run, item.point, item.tasks.values(), item.seeds) for item in items.values()]
        for folder, place in zip(items, workload.places(works, jobs), strict=True):
            words[folder] += ["--place", place]
    launch = launchers.choose(options.launcher, jobs=jobs, detach=options.detach)
    code = launch(words, on_end=on_end, parents=graph.parents_among([item.run for item in todo]))
    outcome.is_left = code == NOT_AWAITED
    outcome.code = 0 if outcome.is_left else code


def _words(item: PlannedPoint) -> list[str]:
    """The arguments of a run's child process after its folder."""
    seeds = ["--seeds", *map(str, item.seeds)] if item.tasks and item.seeds else []
    return [*item.tasks.values(), *seeds]


def _describe_exit(code: int) -> str:
    if code == LOST:
        return "its process ended with an unknown exit code; the same command resumes it"
    if code < 0:
        return f"its process was killed by signal {-code} (9 may mean out of memory); the same command resumes it"
    return f"its process ended with exit code {code}; see its output above"
