"""The layers of a study's finished runs, kept in its report folder."""

from collections.abc import Callable, Sequence
from pathlib import Path

from albert_lab.files import csv_text
from albert_lab.runs import layers, results, states
from albert_lab.storage import write_atomically
from albert_lab.studies.experiment import LAYERS_FIGURE, Experiment
from albert_lab.studies.sweep import PlannedPoint


def keep(folder: Path, experiment: Experiment, planned: Sequence[PlannedPoint], say: Callable[[str], None]) -> None:
    """Write the layers of finished runs into a report folder, where the experiment has a figure of them.

    Raises: see runs.layers.table().
    """
    if LAYERS_FIGURE not in experiment.figures:
        return
    import pandas as pd

    items = {item.run.name: item for item in planned}.values()
    recorded = [row for item in items if item.is_recorded for row in item.records.layers.get(item.run.name, ())]
    found = layers.table([item.run.folder for item in items if states.state(item.run.folder) == "done"], say)
    folder.mkdir(parents=True, exist_ok=True)
    found = pd.concat([found, pd.DataFrame(recorded)], ignore_index=True) if recorded else found
    write_atomically(folder / results.LAYERS, csv_text(found))
