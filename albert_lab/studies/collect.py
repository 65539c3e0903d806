"""The results of a sweep, collected into the study from which its report is written."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from albert_lab import paths
from albert_lab.messages import Say
from albert_lab.runs import finetunings as downstream
from albert_lab.runs import layers, reported, results, states
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import ensembles, side_by_side, study
from albert_lab.studies.experiment import LAYERS_FIGURE, Experiment
from albert_lab.studies.planning import PlannedPoint
from albert_lab.studies.seed_plan import SeedPlan
from albert_lab.studies.study import Study, StudyPoint
from albert_lab.studies.sweep import Outcome


def collect(
    experiment: Experiment,
    planned: Sequence[PlannedPoint],
    outcome: Outcome,
    command: str,
    before: Path,
    say: Say,
    plan: SeedPlan | None = None,
) -> Study:
    """The points of a sweep, its finished runs with their fine-tunings, and its ensembles.

    Args:
        experiment: the experiment that was run.
        planned: its points.
        outcome: the outcome of the sweep.
        command: the command line that made them.
        before: the folder of the report, whose measurement of throughput is kept; if the numbers of a run are only in
            reports, so are the ensembles of that report or of the published one, because their scores are not here.
        say: receives progress lines.
        plan: the plan of its seeds.

    Raises: see runs.layers.table() and ensembles.table().
    """
    found = list(runs(planned, say, with_layers=LAYERS_FIGURE in experiment.figures))
    averaged = []
    if experiment.ensemble:
        is_recorded = any(item.is_recorded for item in planned)
        if is_recorded:
            published = paths.published() / before.parent.name / before.name
            kept = study.ensembles_of(before) or study.ensembles_of(published)
            names = {item.run.name for item in planned}
            averaged = [line for line in kept if line["run"] in names]
        else:
            averaged = ensembles.table(planned, experiment.ensemble.members, say)
    points = study_points(planned, outcome, command)
    return Study(experiment, points, found, averaged, side_by_side.read(before), plan)


def runs(planned: Sequence[PlannedPoint], say: Say, *, with_layers: bool = False) -> Iterator[ReportedRun]:
    """The finished runs of a sweep, each once: from their folders, or else from reports."""
    for item in {item.run.name: item for item in planned}.values():
        folder = item.run.folder
        if record := results.read(folder):
            yield ReportedRun(
                record=record,
                columns=downstream.filled_columns(item.run, item.tasks, item.seeds),
                curve=reported.curve(folder),
                layers=layers.of_run(folder, say) if with_layers else (),
            )
        elif recorded := item.recorded:
            yield recorded


def study_points(planned: Sequence[PlannedPoint], outcome: Outcome, command: str) -> list[StudyPoint]:
    """The points as a study has them, with the reasons why a run or a fine-tuning is missing."""
    found = []
    for item in planned:
        config, here = item.point.config, states.state(item.run.folder)
        state = "done" if item.is_recorded else here
        point = StudyPoint(
            values={axis: item.point.value(axis) for axis in item.point.row},
            labels=item.point.row,
            seed=config.seed,
            run=item.run.name,
            state=state,
            reason=outcome.failures.get(item.run.name, "" if state == "done" else "stopped before its end"),
            failed_tasks=_lacking(item) if here == "done" else "",
            scale=config.scale.name,
            corpus=config.corpus.name,
            command=command,
        )
        found.append(point)
    return found


def _lacking(item: PlannedPoint) -> str:
    """The fine-tunings that a finished run lacks, with the reason of each that failed."""
    failed = downstream.failures(item.run, item.tasks.values(), item.seeds)
    lacking = [
        f"{task.name}, seed {seed}" for task, seed in downstream.missing(item.run, item.tasks.values(), item.seeds)
    ]
    return "; ".join(f"{name}: {failed.get(name, 'not made')}" for name in lacking)
