"""Files with one example per line: tab-separated columns, or by the file's name .csv or JSON objects (.jsonl)."""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from albert_lab.data.lines import lines_of
from albert_lab.distinct import Distinct
from albert_lab.errors import ConfigError
from albert_lab.tasks.formats import check_file

JSON_LINES, CSV = ".jsonl", ".csv"


def _as_texts(labels: Any) -> Any:
    if not isinstance(labels, list):
        return labels
    if any(isinstance(label, bool) for label in labels):
        raise ValueError("write them in quotation marks: YAML reads yes, no, on, off, true and false as booleans")
    return tuple(str(label) if isinstance(label, int) else label for label in labels)


# Labels as written in the file; an integer is read as its digits.
Labels = Annotated[tuple[str, ...] | None, BeforeValidator(_as_texts), Distinct]


class TaskRow(NamedTuple):
    """One example's line: file:line, its number after the header from 0, its values by column, and its problem.

    A value is text or, in JSON, a list of texts; cells without such a value are left out.
    """

    place: str
    number: int
    cells: dict[str, str | tuple[str, ...]]
    flaw: str

    def text(self, name: str | None) -> str | None:
        """The text of a column; None if it has none."""
        cell = self.cells.get(name) if name else None
        return cell if isinstance(cell, str) else None


def read_rows(file: Path, columns: Sequence[str], header: bool, marker: str) -> tuple[list[str], list[TaskRow]]:
    """Reads the column names and the rows of a file.

    Args:
        file: JSON Lines or CSV by its name, else tab-separated, where quotation marks are text and only a line feed
            ends a line. A line of CSV is a record, with line feeds in its quoted cells.
        columns: column names of a tab-separated file without a header line.
        header: whether the first line of a tab-separated file is a header line.
        marker: a column name; a first line that contains it is always a header line.
    """
    lines = read_lines(file)
    if not lines:
        raise ConfigError(f"{file} is empty")
    if file.suffix == JSON_LINES:
        rows = [_object(f"{file.name}:{number + 1}", number, line) for number, line in enumerate(lines)]
        if all(row.flaw for row in rows):
            raise ConfigError(f"{file}: no line is a JSON object; the first one is {rows[0].flaw}")
        return list(dict.fromkeys(name for row in rows for name in row.cells)), rows
    if file.suffix == CSV:
        reader = csv.reader((f"{line}\n" for line in lines), strict=True)
        try:
            cells, numbers = zip(*((row, reader.line_num) for row in reader), strict=True)
        except csv.Error as error:
            raise ConfigError(f"{file}:{reader.line_num}: {error}") from error
    else:
        cells = [line.split("\t") for line in lines]
        numbers = range(1, len(cells) + 1)
    has_header = header or marker in cells[0]
    names = cells[0] if has_header else list(columns)
    rows = []
    for number, row in enumerate(cells[has_header:]):
        flaw = "" if len(row) == len(names) else f"{len(row)} columns instead of {len(names)}"
        place = f"{file.name}:{numbers[number + has_header]}"
        rows.append(TaskRow(place, number, {} if flaw else dict(zip(names, row, strict=True)), flaw))
    return names, rows


def read_lines(file: Path) -> list[str]:
    """The lines of a file, plain or compressed."""
    check_file(file)
    return [line for _, line in lines_of(file)]


def check_columns(file: Path, names: Sequence[str], wanted: Iterable[str | None]) -> None:
    """Raises ConfigError if a column is missing in all lines of a file."""
    if missing := [name for name in wanted if name and name not in names]:
        raise ConfigError(f"{file}: no column {', '.join(missing)}; its columns: {', '.join(names)}")


def write_rows(file: Path, names: Sequence[str], rows: Iterable[Mapping[str, Any]], header: bool) -> None:
    """Writes rows for read_rows(); a missing value is an empty cell, or left out of the JSON object.

    Tabs and line ends within a tab-separated cell become spaces.
    """
    if file.suffix == JSON_LINES:
        objects = ({name: row[name] for name in names if name in row} for row in rows)
        file.write_text(
            "".join(json.dumps(content, ensure_ascii=False) + "\n" for content in objects), encoding="utf-8"
        )
    else:
        cells = [[re.sub(r"[\t\r\n]+", " ", str(row.get(name, ""))) for name in names] for row in rows]
        write_cells(file, [list(names), *cells] if header else cells)


def write_cells(file: Path, rows: Iterable[Sequence[str]]) -> None:
    """Writes lines of tab-separated cells."""
    file.write_bytes("".join("\t".join(row) + "\n" for row in rows).encode())


def _object(place: str, number: int, line: str) -> TaskRow:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return TaskRow(place, number, {}, "no JSON")
    if not isinstance(content, dict):
        return TaskRow(place, number, {}, "no JSON object")
    cells = {name: cell for name, value in content.items() if (cell := _cell(value)) is not None}
    return TaskRow(place, number, cells, "")


def _cell(value: Any) -> str | tuple[str, ...] | None:
    if isinstance(value, list):
        texts = [text for text in map(_cell, value) if isinstance(text, str)]
        return tuple(texts) if len(texts) == len(value) else None
    if isinstance(value, bool):
        return json.dumps(value)
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None
