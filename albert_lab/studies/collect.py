"""The results of a plan, collected into the study from which its report is written."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from albert_lab import own_code, paths
from albert_lab.messages import Say
from albert_lab.runs import finetunings, layers, reported, results
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies.experiment import LAYERS_FIGURE
from albert_lab.studies.plan import Plan, PlannedPoint
from albert_lab.studies.study import EnsembleLine, Study, StudyPoint
from albert_lab.tasks.records import output_folder, summarize
from albert_lab.tasks.task import load_task


def collect(plan: Plan, failures: Mapping[str, str], command: str, say: Say) -> Study:
    """The points of a plan, its finished runs with their fine-tunings, and its ensembles.

    Args:
        failures: the reasons of runs that failed, by name.

    Raises: see runs.layers.find_or_measure() and ensembles().
    """
    experiment = plan.experiment
    collected = list(runs(plan.points, say, with_layers=LAYERS_FIGURE in experiment.figures))
    averaged = ensembles(plan.points, experiment.ensemble.members) if experiment.ensemble else []
    points = study_points(plan, failures, command)
    named = [Path(file).name for file in experiment.include]
    further = tuple(file for file in own_code.included() if file not in named)  # by --include
    experiment = experiment.model_copy(update={"include": (*experiment.include, *further)})
    return Study(experiment, points, collected, averaged)


def runs(points: Sequence[PlannedPoint], say: Say, *, with_layers: bool = False) -> Iterator[ReportedRun]:
    """The finished runs of some points, each once."""
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
    """What became of each point of a plan."""
    return [_point(item, failures, command) for item in plan.points]


def _point(item: PlannedPoint, failures: Mapping[str, str], command: str) -> StudyPoint:
    config, is_done = item.point.config, item.pretraining == "done"
    failed = finetunings.failures(item.missing)
    lacking = [missing.name for missing in item.missing] if is_done else []
    return StudyPoint(
        values={axis: item.point.value(axis) for axis in item.point.row},
        labels=item.point.row,
        seed=config.seed,
        run=item.run.name,
        state=item.pretraining,
        reason=failures.get(item.run.name, "" if is_done else "stopped before its end"),
        failed_tasks="; ".join(f"{name}: {failed.get(name, 'not trained')}" for name in lacking),
        scale=config.scale.name,
        corpus=config.corpus.name,
        command=command,
    )


def ensembles(planned: Sequence[PlannedPoint], members: int) -> list[EnsembleLine]:
    """One line per task: the fine-tunings of its best run, single and averaged (Tables 9 and 10).

    The best run is the one with the highest median over its fine-tunings; a task with no finished run has no line.

    Args:
        members: the maximum number of fine-tunings, best first on the dev set.

    Raises:
        MissingDataError: the scores of a fine-tuning, or the task's data, are missing.
    """
    from albert_lab.tasks.evaluation import ensemble

    lines = []
    for column, name in planned[0].tasks.items():
        finished = [(item, finetunings.finished(item.run, name, item.seeds)) for item in planned]
        finished = [pair for pair in finished if pair[1]]
        if not finished:
            continue
        item, records = max(finished, key=lambda pair: summarize(pair[1]).best.value)
        task, run = load_task(name), item.run
        files = [output_folder(run.folder, task.name, record.seed) / "best.npz" for record in records]
        averaged = ensemble(task, files, paths.tasks_data(), scale=run.config.scale.name, best=members)
        lines.append(
            EnsembleLine(
                column=column,
                title=task.title,
                run=run.name,
                row=", ".join(item.point.row.values()),
                n=records[0].best.main.n,
                single=summarize(records).best.value,
                members=tuple(averaged.members.values()),
                ensemble=averaged.main,
            )
        )
    return lines
