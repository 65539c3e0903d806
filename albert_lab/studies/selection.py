"""Before the runs of a sweep start: which of them to make, and whether they can be made here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from albert_lab.cost import capacity
from albert_lab.errors import ConfigError
from albert_lab.machine import has_gpu
from albert_lab.messages import to_stderr
from albert_lab.runs import job, results, states
from albert_lab.studies import graph
from albert_lab.studies.planning import PlannedPoint, family


@dataclass(frozen=True)
class Selection:
    """The runs of a sweep that are to be trained, and the reasons of failures by run.

    freed are those of them that are finished, but whose weights were freed, and an unfinished run starts from them.
    """

    todo: Sequence[PlannedPoint]
    freed: Sequence[PlannedPoint]
    failures: dict[str, str]


def select(planned: Sequence[PlannedPoint]) -> Selection:
    """The runs that are not finished, except failed ones; reports the numbers of runs on stderr, and writes nothing.

    Raises:
        DamagedFileError: the record of a run is damaged.
    """
    items = family(planned)
    for folder in items:
        results.check(folder)  # a damaged record is reported before anything is trained
    before = {folder: item.state for folder, item in items.items()}
    # A failed run from which only finished ones start is no failure of this sweep.
    asked = {run.folder for item in planned if before[item.run.folder] not in states.FINISHED for run in item.lineage}
    failures = {
        name: f"{reason} (--retry-failed resumes it)"
        for folder, state in before.items()
        if state == "failed" and folder in asked
        for name, reason in items[folder].failures.items()
    }
    recorded = {item.run.name for item in items.values() if before[item.run.folder] == "recorded"}
    needed = graph.needed((item.lineage for item in planned), failures, recorded)
    _add_orphans(failures, items)
    ended = (*states.FINISHED, "failed")
    unfinished = [item.run for folder, item in items.items() if item.tasks and before[folder] not in ended]
    finished_runs = {item.run.name for folder, item in items.items() if states.state(folder) == "done"}
    names = needed | {run.name for run in unfinished if run.name in finished_runs}
    todo = [item for item in items.values() if item.run.name in names]
    freed = [item for item in todo if item.run.name in needed & finished_runs]
    finished, failed = (sum(state in found for state in before.values()) for found in (states.FINISHED, ("failed",)))
    noun = "run" if len(items) == 1 else "runs"
    to_stderr(f"{len(items)} {noun}: {finished} finished before, {len(todo)} to make, {failed} failed before")
    if recorded:
        to_stderr(f"{len(recorded)} finished runs are only in reports; --remake-recorded makes them again")
    return Selection(todo, freed, failures)


def check_here(todo: Sequence[PlannedPoint]) -> None:
    """Check that runs can be made on this machine.

    Raises:
        ConfigError: a run is in Slurm's queue, or needs a GPU or more memory than there is.
    """
    if queued := [found for item in todo if (found := job.queued(item.run.folder))]:
        remedy = f"--slurm waits for them, `scancel {' '.join(found.number for found in queued)}` ends them"
        raise ConfigError(f"{len(queued)} of these runs are jobs in Slurm's queue: {remedy}")
    for item in todo:
        if item.run.config.machine.device == "cuda" and not has_gpu():
            raise ConfigError("machine.device=cuda: this machine has no NVIDIA GPU (allowed: auto, cpu)")
        try:
            capacity.check_training(item.run.config)
        except ConfigError as error:
            raise ConfigError(f"{item.point.words or item.run.name}: {error}") from error


def _add_orphans(failures: dict[str, str], items: Mapping[Path, PlannedPoint]) -> None:
    """Add the reasons of runs that are missing because their parents failed before."""
    for item in items.values():
        run = item.run
        if run.start_from and run.start_from.run in failures and item.state not in states.FINISHED:
            failures.setdefault(run.name, graph.orphaned(run, failures))
