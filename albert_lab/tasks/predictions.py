"""Files of scores, in the form that ensembles average (npz), and of predictions, in the official form."""

import io
from pathlib import Path

import numpy as np

from albert_lab import files
from albert_lab.errors import DamagedFileError, MissingDataError
from albert_lab.storage import write_atomically
from albert_lab.tasks.formats import write_json
from albert_lab.tasks.kind import Answers, Scores
from albert_lab.tasks.task import TaskConfig


def save_scores(scores: Scores, file: Path) -> None:
    """Writes the scores of examples atomically."""
    content = io.BytesIO()
    np.savez_compressed(content, **scores)  # pyright: ignore[reportArgumentType]
    write_atomically(file, content.getvalue())


def load_scores(file: Path) -> Scores:
    """Reads the scores of examples.

    Raises:
        MissingDataError: the file does not exist.
        DamagedFileError: it has no scores.
    """
    if not file.exists():
        raise MissingDataError(f"{file} does not exist")
    remedy = "remove its folder and the record next to the folder, and the same fine-tuning recreates it"
    scores = files.read_arrays(file, remedy)
    if "ids" not in scores:
        raise DamagedFileError(file, "has no scores of examples: ids are missing", remedy)
    return scores


def predictions_file(task: TaskConfig, folder: Path, name: str) -> Path:
    """The file of the predictions with this name."""
    return folder / f"{name}.{'tsv' if task.format.name == 'glue' else 'json'}"


def save_predictions(task: TaskConfig, outcome: Answers, folder: Path, name: str) -> Path:
    """Writes the answers in the task's official form, and no-answer probabilities, if any; returns the first file."""
    file = predictions_file(task, folder, name)
    task.format.write_predictions(outcome.answers, file)  # pyright: ignore[reportArgumentType]
    if outcome.na_probs is not None:
        write_json(dict(outcome.na_probs), folder / f"{name}.na-probs.json")
    return file
