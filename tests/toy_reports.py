"""Toy report folders of any experiment: fixed records, made from the experiment's grid alone."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from math import ceil
from pathlib import Path

from matplotlib.figure import Figure
from records import toy_column, toy_curve_point, toy_finetuning, toy_layer, toy_record

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.figures.drawing import PNG_AND_SVG
from albert_lab.runs.reported import CurvePoint, ReportedRun
from albert_lab.studies import study as studies
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study, StudyPoint
from albert_lab.tasks.records import FinetuningRecord
from albert_lab.tasks.task import TaskConfig, load_task, task_names
from albert_lab.training.layers import Layer

CURVE_POINTS = 4
SCALED_BY = 16  # the factor by which values are smaller than the paper's
DEV_EXAMPLES = 200


def toy_report(folder: Path, asked: Experiment, seeds: int = 2, *, full: bool = False) -> Path:
    """The records of a report at the smoke scale, with numbers that differ from row to row; nothing
    is drawn yet.

    A full report has every run fine-tuned on the experiment's tasks, but for the last run of all,
    which failed, and the first task of its row.
    """
    points = toy_points(asked, seeds)
    tasks = (
        {column: _task(column) for column in asked.columns if column in task_names()}
        if full
        else {}
    )
    if full:
        points[-1] = points[-1].model_copy(update={"reason": "the loss is nan at step 3"})
    if tasks:
        failed = {"failed_tasks": f"{next(iter(tasks))}, seed 0: the loss is nan at step 2"}
        points[-seeds:-1] = [point.model_copy(update=failed) for point in points[-seeds:-1]]
    # As an experiment fixes it: under a budget in seconds, curves are drawn over seconds.
    config = _config(*(text for text in asked.fixed if text.startswith("budget=")))
    runs = []
    for place, point in enumerate(points):
        if point.reason:
            continue
        row, seed = divmod(place, seeds)
        mlm = 20.0 + seed + 2 * row
        record = toy_record(config, name=point.run, mlm=mlm, sop=60.0 - row, seed=seed)
        training = {
            "steps": 100 * CURVE_POINTS,
            "training_seconds": 2.0 * CURVE_POINTS,
            "total_seconds": 9.5,
            "tokens_per_second": 3000.0 + 500 * row + 50 * seed,
        }
        changes = {
            "training": record.training.model_copy(update=training),
            "parameters": record.parameters | {"total": 31_000 * (row + 1)},
        }
        available = [
            task for name, task in tasks.items() if not point.failed_tasks.startswith(name)
        ]
        columns = tuple(
            toy_column(_finetuning(point.run, task, 7 * row + 3 * number, row + 2 * seed + number))
            for number, task in enumerate(available)
        )
        layers = _layers(row, seed) if "layer-similarity" in asked.figures else ()
        record = record.model_copy(update=changes)
        runs.append(ReportedRun(record=record, columns=columns, curve=_curve(mlm), layers=layers))
    studies.write(folder, Study(experiment=asked, points=tuple(points), runs=tuple(runs)))
    return folder


def _curve(mlm: float) -> tuple[CurvePoint, ...]:
    """Evaluations that rise to an accuracy."""
    points = []
    for place in range(1, CURVE_POINTS + 1):
        share = place / CURVE_POINTS
        numbers = {"share": share, "mlm_accuracy_n": 150, "nsp_accuracy_n": 32}
        numbers |= {"sop_accuracy_n": 32, "mlm_accuracy": mlm * share, "nsp_accuracy": 50.0}
        numbers |= {"sop_accuracy": 50 + 10 * share, "mlm_loss": 6.0 - 2 * share}
        numbers |= {"nsp_loss": 0.7, "sop_loss": 0.7 - 0.05 * share}
        points.append(toy_curve_point(100 * place, **numbers))
    return tuple(points)


def compose_figure(
    draw: Callable[[], Figure | None], folder: Path, name: str, kinds: Sequence[str] = PNG_AND_SVG
) -> list[Path]:
    """In the place of drawing.write: the figure is composed, and its files are empty, for drawing
    takes a second.
    """
    files = [folder / f"{name}.{kind}" for kind in kinds] if draw() else []
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    return files


def toy_points(asked: Experiment, seeds: int) -> list[StudyPoint]:
    """Every row of the grid with every seed, all of them done; nothing is composed, which would
    take its time.
    """
    points = []
    for labels in product(*(asked.grid[axis] for axis in asked.axes)):
        row = dict(zip(asked.axes, labels, strict=True))
        axes = {
            "values": {axis: _value(asked, axis, label) for axis, label in row.items()},
            "labels": row,
        }
        name = "_".join(labels).replace(" ", "-")
        command = f"albert-lab {asked.name} scale=smoke seed=range(0,{seeds})"
        same = {"scale": "smoke", "corpus": "sotu", "command": command}
        points += [
            StudyPoint.model_validate(axes | same | {"seed": seed, "run": f"{name}_seed{seed}"})
            for seed in range(seeds)
        ]
    return points


def _value(asked: Experiment, axis: str, label: str) -> str:
    choice = asked.grid[axis][label]
    if not isinstance(choice, str):
        return label
    return str(ceil(int(label) / SCALED_BY)) if "${" in choice and label.isdigit() else choice


_task = cache(load_task)


@cache
def _config(*overrides: str) -> RunConfig:
    return load(["scale=smoke", *overrides])


def _finetuning(run: str, task: TaskConfig, height: int, third: int) -> FinetuningRecord:
    """Downstream scores: rows differ by more than seeds do, and some do not differ."""
    value = 50.0 + height % 11 + 0.5 * (third % 3)
    parts = dict(zip(task.main, (value + 3, value - 3), strict=False))
    return toy_finetuning(run, task.name, value, n=DEV_EXAMPLES, parts=parts)


def _layers(row: int, seed: int) -> tuple[Layer, ...]:
    return tuple(
        toy_layer(
            layer,
            l2_distance=4.0 / layer + row + 0.1 * seed,
            degrees=30.0 / layer + 5 * row + seed,
        )
        for layer in range(1, 5)
    )
