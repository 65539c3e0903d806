"""From planned points to finished runs: skip the finished, launch the rest, say what failed."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from albert_lab import errors, in_use, paths
from albert_lab.config.launcher import LOCAL, LauncherConfig, LocalLauncher, SlurmLauncher
from albert_lab.cost import capacity
from albert_lab.errors import ConfigError
from albert_lab.machine import jobs_at_once
from albert_lab.messages import to_stderr
from albert_lab.runs import finetunings as downstream
from albert_lab.runs import job, preparing, results, states
from albert_lab.runs import run as runs
from albert_lab.studies import graph, launchers, workload
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
        """Whether this process makes what the runs read."""
        return isinstance(self.launcher, LocalLauncher) or self.launcher.preparation == "here"


@dataclass
class Outcome:
    """The outcome of a sweep: 0, or why it is not complete; whether runs continue by themselves; failures by run."""

    code: int = 0
    is_left: bool = False
    failures: dict[str, str] = field(default_factory=dict)


def execute(planned: Sequence[PlannedPoint], options: Options) -> Outcome:
    """Make every run that is not finished, in child processes, and report how each ended on stderr.

    Failed runs are left alone, except after errors that the user can fix.
    """
    items = family(planned)
    in_use.mark(paths.runs())
    for folder in items:
        results.check(folder)  # a damaged record is reported before anything is made
        downstream.forget_failures(folder, fixable_only=True)
    outcome = Outcome()
    before = {folder: item.state for folder, item in items.items()}
    for folder, state in before.items():
        if state == "failed":
            for name, reason in items[folder].failures.items():
                outcome.failures[name] = f"{reason} (--retry-failed resumes it)"
    there = {item.run.name for item in items.values() if before[item.run.folder] == "recorded"}
    needed = graph.needed((item.lineage for item in planned), outcome.failures, there)
    _note_orphans(items.values(), outcome)
    _reopen_freed(items, needed)
    ended = (*states.FINISHED, "failed")
    unfinished = [item.run for folder, item in items.items() if item.tasks and before[folder] not in ended]
    names = needed | {run.name for run in unfinished if states.state(run.folder) == "done"}
    todo = [item for item in items.values() if item.run.name in names]
    finished, failed = (sum(state in found for state in before.values()) for found in (states.FINISHED, ("failed",)))
    noun = "run" if len(items) == 1 else "runs"
    to_stderr(f"{len(items)} {noun}: {finished} finished before, {len(todo)} to make, {failed} failed before")
    if there:
        to_stderr(f"{len(there)} finished runs are recorded in reports alone; --remake-recorded makes them again")
    if todo:
        if options.is_here:
            _check_not_queued(todo)
            for item in todo:
                _check_capacity(item)
        if options.prepares_here:
            preparing.prepare_all((item.run for item in todo if states.state(item.run.folder) != "done"), to_stderr)
        _launch(todo, options, outcome)
    if outcome.failures and not outcome.code:
        is_any_done = any(item.state in states.FINISHED for item in items.values())
        outcome.code = SOME_FAILED if is_any_done else 1
    for name, error in outcome.failures.items():
        to_stderr(f"FAILED {name}: {error}")
    return outcome


def _note_orphans(items: Iterable[PlannedPoint], outcome: Outcome) -> None:
    """Records why runs are missing whose parent failed before."""
    for run in (item.run for item in items):
        if run.start_from and run.start_from.run in outcome.failures and states.state(run.folder) != "done":
            outcome.failures.setdefault(run.name, graph.orphaned(run, outcome.failures))


def _reopen_freed(items: Mapping[Path, PlannedPoint], needed: Collection[str]) -> None:
    """Resets a finished run whose weights were freed and are needed; its fine-tunings stay."""
    for folder, item in items.items():
        if item.run.name in needed and states.state(folder) == "done":
            to_stderr(f"{item.run.name} runs again: its weights were freed, and an unfinished run starts from them")
            (folder / results.RECORD).unlink()


def _check_capacity(item: PlannedPoint) -> None:
    try:
        capacity.check_training(item.run.config)
    except ConfigError as error:
        raise ConfigError(f"{item.point.words or item.run.name}: {error}") from error


def _check_not_queued(todo: Sequence[PlannedPoint]) -> None:
    queued = [found for item in todo if (found := job.queued(item.run.folder))]
    if queued:
        remedy = f"--slurm waits for them, `scancel {' '.join(found.number for found in queued)}` ends them"
        raise ConfigError(f"{len(queued)} of these runs are jobs in Slurm's queue: {remedy}")


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

    # Under a budget in seconds a neighbour would take time away: one run at a time.
    is_timed = any(item.run.config.budget.unit == "seconds" for item in todo)
    asked = jobs_at_once(options.jobs, max(item.run.config.machine.processes for item in todo))
    jobs = 1 if is_timed else asked
    if jobs < asked:
        to_stderr("a budget in seconds: runs go one at a time, whatever --jobs says")
    if is_timed and isinstance(options.launcher, SlurmLauncher) and "--exclusive" not in options.launcher.words:
        to_stderr("a budget in seconds: without --exclusive other jobs on a node take time away")
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
        return "nobody knows how its process ended; the same command resumes it"
    if code < 0:
        return f"its process was killed by signal {-code} (9 may mean out of memory); the same command resumes it"
    return f"its process ended with exit code {code}; see its output above"
