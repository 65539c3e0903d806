"""Files of scores and predictions: scores as they are averaged (npz), predictions in the official form."""

from pathlib import Path

import numpy as np

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.formats.squad import write_na_probs
from albert_lab.tasks.kind import Outcome, Scores
from albert_lab.tasks.task import TaskConfig


def save_scores(scores: Scores, file: Path) -> None:
    """Writes the scores of examples, whole or not at all."""
    temporary = file.with_name(f".{file.name}")
    with temporary.open("wb") as stream:
        np.savez_compressed(stream, **scores)  # pyright: ignore[reportArgumentType]
    temporary.replace(file)


def load_scores(file: Path) -> Scores:
    """The scores of examples.

    Raises:
        MissingDataError: there is no such file.
        ConfigError: it holds no scores.
    """
    try:
        with np.load(file, allow_pickle=False) as content:
            scores = dict(content)
    except FileNotFoundError as error:
        raise MissingDataError(f"{file} is not there") from error
    except ValueError as error:
        raise ConfigError(f"{file} holds no scores: {error}") from error
    if "ids" not in scores:
        raise ConfigError(f"{file} holds no scores of examples: it has no ids")
    return scores


def predictions_file(task: TaskConfig, folder: Path, name: str) -> Path:
    """Where predictions of that name are."""
    return folder / f"{name}.{'tsv' if task.format.name == 'glue' else 'json'}"


def save_predictions(task: TaskConfig, outcome: Outcome, folder: Path, name: str) -> Path:
    """The file of the answers, written in the task's official form, with no-answer probabilities beside it, if any."""
    file = predictions_file(task, folder, name)
    task.format.write_predictions(outcome.answers, file)  # pyright: ignore[reportArgumentType]
    if outcome.na_probs is not None:
        write_na_probs(outcome.na_probs, folder / f"{name}.na-probs.json")
    return file
