"""Files of scores, in the form that ensembles average (npz), and of predictions."""

import io
import json
from pathlib import Path

import numpy as np

from albert_lab import files
from albert_lab.errors import DamagedFileError, MissingDataError
from albert_lab.storage import write_atomically
from albert_lab.tasks.kind import Answers, Scores


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


def save_predictions(outcome: Answers, folder: Path, name: str) -> None:
    """Writes the answers as JSON of id -> answer, and no-answer probabilities, if any."""
    write_atomically(folder / f"{name}.json", json.dumps(dict(outcome.answers), ensure_ascii=False))
    if outcome.na_probs is not None:
        write_atomically(folder / f"{name}.na-probs.json", json.dumps(dict(outcome.na_probs)))
