"""The ensembles of a table: for each task, the fine-tunings of the best run, averaged (Tables 9 and 10)."""

from collections.abc import Sequence
from statistics import median

from albert_lab import paths
from albert_lab.messages import Say
from albert_lab.runs import finetunings
from albert_lab.studies.plan import PlannedPoint
from albert_lab.studies.study import EnsembleLine
from albert_lab.tasks.records import FinetuningRecord, output_folder, summarize
from albert_lab.tasks.task import TaskConfig, load_task


def table(planned: Sequence[PlannedPoint], members: int, say: Say) -> list[EnsembleLine]:
    """One line per task: the scores of the fine-tunings of its best run, single and averaged, in percent.

    The best run is the one with the highest median over its fine-tunings; a task with no finished run has no line.

    Args:
        members: The maximum number of fine-tunings, best first on the dev set.

    Raises:
        MissingDataError: the scores of a fine-tuning, or the task's data, are missing.
    """
    lines = []
    for column, name in planned[0].tasks.items():
        finished = {
            item.run.folder: (item, records)
            for item in planned
            if (records := finetunings.finished(item.run, name, item.seeds))
        }
        if finished:
            item, records = max(finished.values(), key=lambda pair: summarize(pair[1]).best.value)
            task = load_task(name)
            lines.append(_line(column, item, task, records, members, say))
    return lines


def _line(
    column: str, item: PlannedPoint, task: TaskConfig, records: Sequence[FinetuningRecord], members: int, say: Say
) -> EnsembleLine:
    from albert_lab.tasks.ensemble import ensemble

    run = item.run
    files = [output_folder(run.folder, task.name, record.seed) / "best.npz" for record in records]
    ensembled = ensemble(task, files, paths.tasks_data(), scale=run.config.scale.name, best=members)
    single = {name: median(record.best.scores[name].value for record in records) for name in records[0].best.scores}
    return EnsembleLine(
        column=column,
        task=task.name,
        title=task.title,
        metrics=task.main,
        run=run.name,
        row=", ".join(item.point.row.values()),
        seed=run.config.seed,
        n=records[0].best.main.n,
        finetunings=len(records),
        single=summarize(records).best.value,
        single_scores=single,
        members=tuple(ensembled.members.values()),
        ensemble=ensembled.main,
        ensemble_scores={name: ensembled.outcome.values[name] for name in single},
    )
