"""From an experiment to planned points: the run of each, its fine-tunings, and their state."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from albert_lab import paths
from albert_lab.config.compose import axes
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.messages import to_stderr, with_progress
from albert_lab.runs import columns, results, states
from albert_lab.runs import finetunings as downstream
from albert_lab.runs import run as runs
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import continuing, graph, recorded
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.points import Point, points
from albert_lab.studies.seed_plan import SeedPlan


@dataclass(frozen=True)
class PlannedPoint:
    """A point of an experiment with the run that makes it; several points may share one.

    tasks maps each downstream column of the table to the task that fills it, by name or file; seeds are those of the
    fine-tunings (None: the seeds of each task); ancestors are the points that it starts from, oldest first; records
    are the run as read from reports.
    """

    point: Point
    run: runs.Run
    tasks: dict[str, str]
    ancestors: tuple["PlannedPoint", ...] = ()
    records: tuple[ReportedRun, ...] = ()
    seeds: downstream.Seeds = None

    @property
    def lineage(self) -> list[runs.Run]:
        """The runs that it starts from, oldest first, and its own run."""
        return [*(item.run for item in self.ancestors), self.run]

    @property
    def state(self) -> states.State:
        """The state of the run with its fine-tunings."""
        found = states.state_with(self.run, list(self.tasks.values()), self.seeds)
        return "recorded" if self.is_recorded and found not in states.TAKEN else found

    @property
    def shown_state(self) -> str:
        """The state for a list of runs: damaged, where a command that makes runs would refuse the record."""
        try:
            results.check(self.run.folder)
        except DamagedFileError:
            return "damaged"
        return self.state

    @property
    def is_recorded(self) -> bool:
        """Whether reports have all numbers of the run and its folder lacks some."""
        return self.recorded is not None

    @property
    def recorded(self) -> ReportedRun | None:
        """The run from reports, with all fine-tunings of its table; None if some are missing or the run is done."""
        if not self.records or states.state(self.run.folder) == "done":
            return None
        return recorded.complete(self.records, self.run, self.tasks, self.seeds)

    @property
    def lacks_pretraining(self) -> bool:
        """Whether its weights are not final; False if all its numbers are in reports."""
        return not self.is_recorded and states.state(self.run.folder) not in states.PRETRAINED

    @property
    def failures(self) -> dict[str, str]:
        """The reasons of failures of the run or its fine-tunings, by name."""
        if states.state(self.run.folder) == "failed":
            return {self.run.name: states.failure(self.run.folder)}
        found = downstream.failures(self.run, self.tasks.values(), self.seeds)
        return {f"{self.run.name}, {name}": reason for name, reason in found.items()}


def plan(experiment: Experiment, overrides: Sequence[str], tasks: Sequence[str] | None = None) -> list[PlannedPoint]:
    """Every point of an experiment with its run and fine-tunings; writes nothing.

    Args:
        experiment: the experiment.
        overrides: `key=value` texts that win over it.
        tasks: names of the downstream tasks; None: those that fill the experiment's columns.

    Raises:
        ConfigError: a configuration that does not fit, or points that are scored on different held-out sets.
        MissingDataError: text, or the data of a task given by its name, is missing.
    """
    from albert_lab.data.fingerprint import fingerprints_taken_once
    from albert_lab.data.pairs import check_kinds

    with fingerprints_taken_once():
        planned = _plan(experiment, overrides, tasks)
    for item in planned:
        check_kinds(item.point.config.inter_sentence)
    return planned


def _plan(experiment: Experiment, overrides: Sequence[str], tasks: Sequence[str] | None) -> list[PlannedPoint]:
    found = points(experiment, overrides, to_stderr)
    if experiment.continues:
        found = continuing.start_from(found, experiment.continues, overrides)
    chosen = columns.choose(experiment.columns, found[0].config, tasks)
    place = report_place(found[0].config)
    reports = (paths.reports() / place, paths.published() / place)
    asked = with_progress(found, len(found), "planned {} of {} runs", to_stderr)
    planned = [_planned(point, chosen, reports, experiment.finetuning_seeds) for point in asked]
    _check_one_evaluation_set(planned)
    return planned


def _planned(point: Point, tasks: dict[str, str], reports: Iterable[Path], seeds: downstream.Seeds) -> PlannedPoint:
    *above, (_, run) = graph.lineage(point)
    ancestors = tuple(PlannedPoint(*each, {}) for each in above)
    return PlannedPoint(point, run, tasks, ancestors, recorded.read(run.name, reports, to_stderr), seeds)


def seed_plan(planned: Sequence[PlannedPoint], overrides: Sequence[str]) -> SeedPlan:
    """The plan of a study's seeds: that of its scale, or one look at those of the experiment or the overrides."""
    seeds = list(dict.fromkeys(item.point.config.seed for item in planned))
    config = planned[0].point.config
    is_planned = tuple(seeds) == config.scale.seeds and "seed" not in axes(overrides)
    looks = config.scale.looks if is_planned else (len(seeds),)
    return SeedPlan(seeds=tuple(seeds), looks=looks)


def at_look(planned: Sequence[PlannedPoint], plan: SeedPlan, look: int) -> list[PlannedPoint]:
    """The points of a look."""
    seeds = plan.seeds_at(look)
    return [item for item in planned if item.point.config.seed in seeds]


def family(planned: Sequence[PlannedPoint]) -> dict[Path, PlannedPoint]:
    """Every run of a sweep once, by folder, after its ancestors; runs that are not rows of the table have no tasks."""
    rows = {item.run.folder: item for item in planned}
    return {each.run.folder: rows.get(each.run.folder, each) for item in planned for each in (*item.ancestors, item)}


def _check_one_evaluation_set(planned: Sequence[PlannedPoint]) -> None:
    rows: dict[str, str] = {}
    for item in planned:
        rows.setdefault(item.run.evaluation_set, item.point.words)
    if len(rows) > 1:
        raise ConfigError(
            "one table cannot hold these rows, which are scored on different held-out sets (corpus, tokenizer, length"
            f" and masking decide the set): {'; '.join(rows.values())}. Make them as separate sweeps"
        )


def with_available_tasks(planned: Sequence[PlannedPoint]) -> list[PlannedPoint]:
    """The points without the tasks that the corpus cannot provide; prepares the data of the other tasks."""
    tasks = columns.available(planned[0].tasks, planned[0].point.config, to_stderr)
    return [replace(item, tasks=tasks) for item in planned]


def with_known_tasks(planned: Sequence[PlannedPoint]) -> list[PlannedPoint]:
    """The points without the tasks that the corpus is known not to provide; writes nothing.

    They keep all tasks if those of the corpus were never prepared.
    """
    tasks = columns.known(planned[0].tasks, planned[0].point.config)
    return [replace(item, tasks=tasks) for item in planned]


def forget(
    planned: Sequence[PlannedPoint], *, fresh: bool, retry_failed: bool, remake_recorded: bool = False
) -> list[PlannedPoint]:
    """The points, after a reset of the runs to repeat or resume: they no longer count as finished or failed.

    Args:
        planned: the points.
        fresh: make all of them again.
        retry_failed: resume those that failed.
        remake_recorded: make those whose numbers are only in reports.
    """
    if fresh or remake_recorded:
        planned = [replace(item, records=()) for item in planned]
    for item in family(planned).values():
        if item.point.run:  # a run that the sweep continues is not part of the sweep
            continue
        if fresh and item.state not in states.TAKEN:
            states.forget(item.run.folder)
        elif retry_failed and item.state == "failed":
            states.forget_failure(item.run.folder)
    return list(planned)


def report_place(config: RunConfig) -> str:
    """Name of the folder for reports of this scale and corpus."""
    return f"{config.scale.name}-{config.corpus.name}"
