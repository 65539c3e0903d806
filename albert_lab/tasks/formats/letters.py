"""Predictions of multiple choice: one JSON object of question id -> letter."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from albert_lab.errors import ConfigError
from albert_lab.tasks.examples import enumerate_few
from albert_lab.tasks.formats import read_json


def read_letters(file: Path, letters: Sequence[str]) -> dict[str, int]:
    """Indices of the chosen options by question id.

    Raises:
        MissingDataError: the file does not exist.
        ConfigError: not a JSON object with letters.
    """
    found = read_json(file, dict[str, str])
    wrong = [f"{id}: {letter}" for id, letter in found.items() if letter not in letters]
    if wrong:
        known = ", ".join(letters) if len(letters) < 9 else f"{letters[0]} to {letters[-1]}"
        raise ConfigError(f"{file}: predictions that are not one of {known}: {enumerate_few(wrong)}")
    return {id: letters.index(letter) for id, letter in found.items()}


def write_letters(predictions: Mapping[str, int], file: Path, letters: Sequence[str]) -> None:
    """Writes the letters of the chosen options by question id."""
    file.write_text(json.dumps({id: letters[label] for id, label in predictions.items()}), encoding="utf-8")
