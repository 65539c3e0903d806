"""The file formats of the tasks, read and written. A format is a section of a task's YAML with four methods.

read(file, labelled) gives the examples and the issues: where labelled, an example without a usable label is left out,
else it stays, since a prediction file covers all of them. write(examples, file) is its inverse. read_predictions and
write_predictions do the same for predictions by example id, in the form that leaderboards and official scripts take.
scores names what predictions can be scored by, needs the settings without which the kind cannot do, and sequences how
many a model reads for an example.
"""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from albert_lab.errors import ConfigError, MissingDataError

T = TypeVar("T")


def read_bytes(file: Path) -> bytes:
    """The content of a file.

    Raises:
        MissingDataError: there is none.
        ConfigError: it is a folder.
    """
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        raise MissingDataError(f"{file} is not there") from error
    except IsADirectoryError as error:
        raise ConfigError(f"{file} is a folder, where a file is expected") from error


def read_json(file: Path, form: TypeAdapter[T]) -> T:
    """The content of a JSON file, checked against its form.

    Raises:
        MissingDataError: there is no such file.
        ConfigError: it is no JSON, is cut short, or a key is missing or of another type; names file and place.
    """
    try:
        return form.validate_json(read_bytes(file))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{file}: {place + ': ' if place else ''}{first['msg']}") from error
