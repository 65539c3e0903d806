"""The rows of a task's file: tab-separated, CSV, JSON or JSON Lines, plain or compressed, or parquet."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from albert_lab.data.lines import lines_of, suffixes
from albert_lab.errors import ConfigError, MissingDataError

JSON_LINES = (".jsonl", ".ndjson")
Row = tuple[str, dict[str, Any]]  # file:line, and the values by column; none if the line has more or fewer of them


def read_rows(
    file: Path, wanted: Sequence[str | None] = (), columns: Sequence[str] = (), header: bool = True
) -> list[Row]:
    """The rows of a file, which has the form that its name ends in; any other name means tab-separated.

    In tab-separated files quotation marks are text, as in GLUE's.

    Args:
        wanted: columns that the file must have.
        columns: the columns of a table without a header line.
        header: whether the first line of a table is a header line.

    Raises:
        MissingDataError: the file does not exist. ConfigError: it is empty, lacks a column, or has another form.
    """
    suffix = suffixes(file)[0]
    lines = [] if suffix == ".parquet" else [line for _, line in lines_of(file)]
    try:
        if suffix == ".parquet":
            rows = [*enumerate(_parquet(file), 1)]
        elif suffix in JSON_LINES:
            rows = [(number, json.loads(line)) for number, line in enumerate(lines, 1)]
        elif suffix == ".json":
            content = json.loads("\n".join(lines))
            rows = [*enumerate(content["data"] if isinstance(content, dict) else content, 1)]
        else:
            rows = _table(suffix, lines, columns, header)
    except (ValueError, KeyError, TypeError, RecursionError, OSError, csv.Error) as error:
        raise ConfigError(f"{file} cannot be read as {suffix or 'a table'}: {error!r}") from error
    if not rows or not all(isinstance(cells, dict) for _, cells in rows):
        raise ConfigError(f"{file} has {'an item that is no object' if rows else 'no examples'}")
    names = dict.fromkeys(name for _, cells in rows for name in cells)
    if lacking := [name for name in wanted if name and name not in names]:
        raise ConfigError(f"{file}: no column {', '.join(lacking)}; its columns: {', '.join(names)}")
    return [(f"{file.name}:{number}", cells) for number, cells in rows]


def as_text(value: Any) -> str | None:
    """A cell as text: a whole number without a decimal point; None for anything but text, numbers and booleans."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def text(cells: dict[str, Any], name: str) -> str:
    """The text or number of a column, as text.

    Raises:
        ValueError: there is none.
    """
    if not cells:
        raise ValueError("more or fewer columns than in the first line")
    if (found := as_text(cells.get(name))) is None:
        raise ValueError(f"no text in {name}")
    return found


def _parquet(file: Path) -> list[dict[str, Any]]:
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingDataError(f"{file} needs the package datasets: pip install 'albert-lab[hub]'") from error
    return Dataset.from_parquet(str(file)).to_list()  # pyright: ignore[reportAttributeAccessIssue]


def _table(suffix: str, lines: list[str], columns: Sequence[str], header: bool) -> list[tuple[int, dict[str, str]]]:
    if suffix == ".csv":
        separator = ";" if "".join(lines[:1]).count(";") > "".join(lines[:1]).count(",") else ","
        reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
        table = [(reader.line_num, row) for row in reader]
    else:
        table = [(number, line.split("\t")) for number, line in enumerate(lines, 1)]
    names = table[0][1] if header and table else list(columns)
    return [
        (number, dict(zip(names, cells, strict=True)) if len(cells) == len(names) else {})
        for number, cells in table[header:]
    ]
