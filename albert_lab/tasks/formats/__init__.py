"""Readers and writers of the tasks' file formats. A format is a section of a task's YAML with four methods.

read(file, labelled) returns the examples and the issues; if labelled, it leaves out examples without a usable label,
otherwise it keeps them, since a prediction file covers all examples. write(examples, file) is its inverse.
read_predictions and write_predictions do the same for predictions by example id, in the form that leaderboards and
official scripts read. scores has the names of the possible scores, needs the required settings of the kind, and
sequences the number of sequences per example.
"""

from pathlib import Path
from typing import TypeVar

from albert_lab import files
from albert_lab.errors import ConfigError, MissingDataError

T = TypeVar("T")


def check_file(file: Path) -> None:
    """Raise MissingDataError if a file does not exist, and ConfigError if it is a folder."""
    if file.is_dir():
        raise ConfigError(f"{file} is a folder, but a file is expected")
    if not file.exists():
        raise MissingDataError(f"{file} does not exist")


def read_json(file: Path, form: type[T]) -> T:
    """The content of a JSON file, checked against its form.

    Raises:
        MissingDataError: the file does not exist.
        ConfigError: invalid or truncated JSON, or a key that is missing or has another type; names file and place.
    """
    check_file(file)
    return files.read_json(file, form)
