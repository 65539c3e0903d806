"""Readers and writers of the tasks' file formats. A format is a section of a task's YAML with four methods.

read(file, labelled) returns the examples and the issues; if labelled, it leaves out examples without a usable label,
otherwise it keeps them, since a prediction file covers all examples. write(examples, file) is its inverse.
read_predictions and write_predictions do the same for predictions by example id, in the form that leaderboards and
official scripts read. scores has the names of the possible scores, needs the required settings of the kind, and
sequences the number of sequences per example.

Readers raise MissingDataError if a file does not exist, and ConfigError if it has another form or nothing in it can be
used; both name the file.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from albert_lab import files
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks.examples import Issue, describe

T = TypeVar("T")


def check_file(file: Path) -> None:
    """Raise MissingDataError if a file does not exist, and ConfigError if it is a folder."""
    if file.is_dir():
        raise ConfigError(f"{file} is a folder, but a file is expected")
    if not file.exists():
        raise MissingDataError(f"{file} does not exist")


def read_json(file: Path, form: type[T]) -> T:
    """The content of a JSON file, checked against its form."""
    check_file(file)
    return files.read_json(file, form)


def write_json(content: object, file: Path) -> None:
    """Write a JSON file."""
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def usable(
    file: Path, examples: list[T], issues: Sequence[Issue], what: str = "question"
) -> tuple[list[T], list[Issue]]:
    """The examples of a file, of which there must be one, and their issues."""
    if not examples:
        raise ConfigError(f"{file}: no {what} can be used: {describe(issues) or 'it has none'}")
    return examples, list(issues)
