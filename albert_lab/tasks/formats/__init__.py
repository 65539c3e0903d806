"""Readers and writers of the tasks' file formats. A format is a section of a task's YAML with four methods.

read(file, labelled) returns the examples and the issues; if labelled, it leaves out examples without a usable label,
otherwise it keeps them, since a prediction file covers all examples. write(examples, file) is its inverse.
read_predictions and write_predictions do the same for predictions by example id, in the form that leaderboards and
official scripts read. scores has the names of the possible scores, needs the required settings of the kind, and
sequences the number of sequences per example.
"""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from albert_lab.errors import ConfigError, MissingDataError

T = TypeVar("T")


def read_bytes(file: Path) -> bytes:
    """The content of a file.

    Raises:
        MissingDataError: the file does not exist.
        ConfigError: the path is a folder.
    """
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        raise MissingDataError(f"{file} does not exist") from error
    except IsADirectoryError as error:
        raise ConfigError(f"{file} is a folder, but a file is expected") from error


def read_json(file: Path, form: TypeAdapter[T]) -> T:
    """The content of a JSON file, checked against its form.

    Raises:
        MissingDataError: the file does not exist.
        ConfigError: invalid or truncated JSON, or a key that is missing or has another type; names file and place.
    """
    try:
        return form.validate_json(read_bytes(file))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{file}: {place + ': ' if place else ''}{first['msg']}") from error
