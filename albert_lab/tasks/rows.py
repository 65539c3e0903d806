"""The rows of a task's file: tab-separated, CSV, JSON or JSON Lines, plain or compressed, or parquet."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_lab.data.lines import lines_of, suffixes
from albert_lab.errors import ConfigError, MissingDataError

JSON_LINES = (".jsonl", ".ndjson")


class Row(NamedTuple):
    """One example of a file: file:line, its number from 0, its values by column, and what is wrong with its line."""

    place: str
    number: int
    cells: dict[str, Any]
    flaw: str = ""

    def text(self, name: str | None) -> str | None:
        """The text or number of a column as text; None if there is none."""
        return as_text(self.cells.get(name)) if name else None

    def texts(self, name: str) -> tuple[str, ...]:
        """The texts of a column that has a list of them, or an object with a list `text` (as `datasets` has it)."""
        cell = self.cells.get(name)
        cell = cell.get("text") if isinstance(cell, dict) else cell
        texts = [as_text(value) for value in cell] if isinstance(cell, list | tuple) else []
        return tuple(text for text in texts if text is not None) if None not in texts else ()


def as_text(value: Any) -> str | None:
    """A cell as text: a whole number without a decimal point; None for anything but text, numbers and booleans."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def check_file(file: Path) -> None:
    """Raise MissingDataError if a file does not exist, and ConfigError if it is a folder, a pipe or a device."""
    if not file.exists():
        raise MissingDataError(f"{file} does not exist")
    if not file.is_file():
        raise ConfigError(f"{file} is {'a folder' if file.is_dir() else 'no ordinary file'}, but a file is expected")


def read_rows(file: Path, columns: Sequence[str] = (), header: bool = True, marker: str = "") -> list[Row]:
    """The rows of a file, which has the form that its name ends in; any other name means tab-separated.

    In tab-separated files quotation marks are text, as in GLUE's, unless the whole file is quoted as CSV is.

    Args:
        columns: column names of a tab-separated file without a header line.
        header: whether the first line of a tab-separated file is a header line.
        marker: a column name; a first line that contains it is always a header line.

    Raises:
        MissingDataError: the file does not exist. ConfigError: it is empty, or has another form than its name says.
    """
    check_file(file)
    suffix = suffixes(file)[0]
    if suffix == ".parquet":
        return [Row(f"{file.name}:{number}", number, cells) for number, cells in enumerate(_parquet(file))]
    lines = [line for _, line in lines_of(file)]
    if not any(lines):
        raise ConfigError(f"{file} is empty")
    if suffix in JSON_LINES:
        rows = [_object(file, number, line) for number, line in enumerate(lines)]
        if all(row.flaw for row in rows):
            raise ConfigError(f"{file}: no line is a JSON object; the first one is {rows[0].flaw}")
        return rows
    if suffix == ".json":
        return _items(file, "\n".join(lines))
    return _table(file, lines, columns, header, marker)


def check_columns(file: Path, rows: Sequence[Row], wanted: Iterable[str | None]) -> None:
    """Raises ConfigError if a column is missing in all rows of a file."""
    names = list(dict.fromkeys(name for row in rows for name in row.cells))
    if names and (missing := [name for name in wanted if name and name not in names]):
        raise ConfigError(f"{file}: no column {', '.join(missing)}; its columns: {', '.join(names)}")


def _parquet(file: Path) -> list[dict[str, Any]]:
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingDataError(f"{file} needs the package datasets: pip install 'albert-lab[hub]'") from error
    try:
        return Dataset.from_parquet(str(file)).to_list()  # pyright: ignore[reportAttributeAccessIssue]
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read as parquet: {error}") from error


def _object(file: Path, number: int, line: str) -> Row:
    place = f"{file.name}:{number + 1}"
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return Row(place, number, {}, "no JSON")
    return Row(place, number, content) if isinstance(content, dict) else Row(place, number, {}, "no JSON object")


def _items(file: Path, text: str) -> list[Row]:
    """The rows of a JSON file: a list of objects, or an object whose `data` is one."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: invalid or truncated JSON: {error}") from error
    items = content.get("data") if isinstance(content, dict) else content
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigError(f"{file}: neither a list of JSON objects nor an object with one as data")
    return [Row(f"{file.name}:{number + 1}", number, item) for number, item in enumerate(items)]


def _table(file: Path, lines: list[str], columns: Sequence[str], header: bool, marker: str) -> list[Row]:
    is_csv = suffixes(file)[0] == ".csv"
    separator = "\t" if not is_csv else ";" if lines[0].count(";") > lines[0].count(",") else ","
    try:
        table = _quoted(lines, separator) if is_csv else _plain(lines, may_be_quoted=header and not columns)
    except csv.Error as error:
        raise ConfigError(f"{file}: {error}") from error
    has_header = header or marker in table[0][1]
    names = table[0][1] if has_header else list(columns)
    rows = []
    for number, (line, cells) in enumerate(table[has_header:]):
        flaw = "" if len(cells) == len(names) else f"{len(cells)} columns instead of {len(names)}"
        rows.append(Row(f"{file.name}:{line}", number, {} if flaw else dict(zip(names, cells, strict=True)), flaw))
    return rows


def _plain(lines: list[str], may_be_quoted: bool) -> list[tuple[int, list[str]]]:
    table = [(number, line.split("\t")) for number, line in enumerate(lines, 1)]
    is_ragged = len({len(cells) for _, cells in table}) > 1
    if may_be_quoted and (is_ragged or any('""' in line for line in lines)):  # perhaps as pandas writes it
        try:
            quoted = _quoted(lines, "\t")
        except csv.Error:
            return table
        if len({len(cells) for _, cells in quoted}) == 1:
            return quoted
    return table


def _quoted(lines: list[str], separator: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    return [(reader.line_num, row) for row in reader]
