"""The results of a plan, collected into the study from which its report is written."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from albert_lab import own_code
from albert_lab.messages import Say
from albert_lab.runs import finetunings, layers, reported, results
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import ensembles
from albert_lab.studies.experiment import LAYERS_FIGURE
from albert_lab.studies.plan import Plan, PlannedPoint
from albert_lab.studies.study import Study, StudyPoint


def collect(plan: Plan, failures: Mapping[str, str], command: str, say: Say) -> Study:
    """The points of a plan, its finished runs with their fine-tunings, and its ensembles.

    Args:
        failures: the reasons of runs that failed, by name.

    Raises: see runs.layers.find_or_measure() and ensembles.table().
    """
    experiment = plan.experiment
    collected = list(runs(plan.points, say, with_layers=LAYERS_FIGURE in experiment.figures))
    averaged = []
    if experiment.ensemble:
        averaged = ensembles.table(plan.points, experiment.ensemble.members, say)
    points = study_points(plan, failures, command)
    named = [Path(file).name for file in experiment.include]
    further = tuple(file for file in own_code.included() if file not in named)  # by --include
    experiment = experiment.model_copy(update={"include": (*experiment.include, *further)})
    return Study(experiment, points, collected, averaged)


def runs(points: Sequence[PlannedPoint], say: Say, *, with_layers: bool = False) -> Iterator[ReportedRun]:
    """The finished runs of some points, each once: from their folders."""
    for item in {item.run.name: item for item in points}.values():
        folder = item.run.folder
        if record := results.read(folder):
            yield ReportedRun(
                record=record,
                columns=finetunings.filled_columns(item.run, item.tasks, item.seeds, with_random=item.with_random),
                curve=reported.curve(folder),
                layers=layers.find_or_measure(folder, say) if with_layers else (),
            )


def study_points(plan: Plan, failures: Mapping[str, str], command: str) -> list[StudyPoint]:
    points_of_study = []
    for item in plan.points:
        config = item.point.config
        state = item.pretraining
        point = StudyPoint(
            values={axis: item.point.value(axis) for axis in item.point.row},
            labels=item.point.row,
            seed=config.seed,
            run=item.run.name,
            state=state,
            reason=failures.get(item.run.name, "" if state == "done" else "stopped before its end"),
            failed_tasks=_lacking(item) if item.pretraining == "done" else "",
            scale=config.scale.name,
            corpus=config.corpus.name,
            command=command,
        )
        points_of_study.append(point)
    return points_of_study


def _lacking(item: PlannedPoint) -> str:
    """The fine-tunings that a finished run lacks, with the reason of each that failed."""
    failed = finetunings.failures(item.missing)
    return "; ".join(f"{lacking.name}: {failed.get(lacking.name, 'not trained')}" for lacking in item.missing)
