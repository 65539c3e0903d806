"""Toy report folders of any experiment, for tests of figures."""

from pathlib import Path
from unittest.mock import patch

import pandas as pd
from records import toy_record

from albert_lab.analysis import report
from albert_lab.lab import experiment, results
from albert_lab.lab.experiment import Experiment
from albert_lab.lab.run import Run
from albert_lab.lab.sweep import Outcome, PlannedPoint, points_table

CURVE_POINTS = 4
PRINTS = {"corpus": "c0ffee", "tokenizer": "bead"}


def toy_report(folder: Path, asked: Experiment, seeds: int = 2, trunk_points: int = 0) -> Path:
    """The tables of a report at the smoke scale, with numbers that differ from row to row; nothing is drawn yet.

    The first trunk_points of each learning curve are the same in all rows.
    """
    points = experiment.points(asked, ["scale=smoke", f"seed=range(0,{seeds})"])
    planned = [PlannedPoint(point, Run(point.config, PRINTS), tasks={}) for point in points]
    records, curves, layers = [], [], []
    for place, item in enumerate(planned):
        row, seed = divmod(place, seeds)
        mlm = 0.2 + 0.02 * row + 0.01 * seed
        record = toy_record(item.point.config, name=item.run.name, mlm=mlm, sop=0.6 - 0.01 * row)
        training = record.training.model_copy(update={"tokens_per_second": 3000.0 + 500 * row + 50 * seed})
        parameters = record.parameters | {"total": 31_000 * (row + 1)}
        records.append(record.model_copy(update={"training": training, "parameters": parameters}))
        for point in range(1, CURVE_POINTS + 1):
            share = point / CURVE_POINTS
            ours = 0.2 + 0.01 * seed if point <= trunk_points else mlm
            curves.append({"run": item.run.name, "step": 100 * point, "share": share, "training_seconds": 2.0 * point})
            curves[-1] |= {"mlm_accuracy": ours * share, "nsp_accuracy": 0.5, "sop_accuracy": 0.5 + 0.1 * share}
        for token in ("cls", "mean"):
            for layer in range(1, 5):
                measures = {"l2_distance": 4.0 / layer + row + 0.1 * seed, "degrees": 30.0 / layer + 5 * row + seed}
                layers.append({"run": item.run.name, "corpus": "sotu", "layer": layer, "token": token, **measures})
    table = points_table(planned, Outcome(), f"albert-lab {asked.name} scale=smoke").assign(state="done", reason="")
    folder.mkdir(parents=True)
    if "layer-similarity" in asked.figures:
        (folder / results.LAYERS).write_text(pd.DataFrame(layers).to_csv(index=False))
    with patch.object(report, "rebuild"):
        report.write(
            folder, asked, table, pd.DataFrame(map(results.as_row, records)), pd.DataFrame(curves), pd.DataFrame()
        )
    return folder
