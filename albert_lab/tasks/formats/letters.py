"""Predictions of multiple choice: one JSON object of question id -> letter."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from albert_lab.config.section import Section
from albert_lab.errors import ConfigError
from albert_lab.tasks.examples import enumerate_few
from albert_lab.tasks.formats import read_json, write_json


class LettersFormat(Section):
    """A format of questions whose options are named by letters."""

    letters: ClassVar[tuple[str, ...]]
    scores: ClassVar[tuple[str, ...]] = ("accuracy",)
    needs: ClassVar[tuple[str, ...]] = ("question_length",)

    def read_predictions(self, file: Path) -> dict[str, int]:
        """Indices of the chosen options by question id."""
        letters, known = read_json(file, dict[str, str]), self.letters
        if wrong := [f"{id}: {letter}" for id, letter in letters.items() if letter not in known]:
            allowed = ", ".join(known) if len(known) < 9 else f"{known[0]} to {known[-1]}"
            raise ConfigError(f"{file}: predictions that are not one of {allowed}: {enumerate_few(wrong)}")
        return {id: known.index(letter) for id, letter in letters.items()}

    def write_predictions(self, predictions: Mapping[str, int], file: Path) -> None:
        """Writes the letters of the chosen options by question id."""
        write_json({id: self.letters[label] for id, label in predictions.items()}, file)
