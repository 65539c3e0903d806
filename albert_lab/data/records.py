"""Records of the formats that are read: one reader a format, by the suffix of a file's name or by its first line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from albert_lab.data import hub
from albert_lab.data.lines import lines_of
from albert_lab.errors import ConfigError

# Number (of a line or of a record, from 1) and content: a record, or a line of JSON.
Records = Iterator[tuple[int, Any]]
_MARKUP = ("<?xml", "<!doctype", "<html", "<mediawiki", "<tei", "<rss")


def json_lines(file: Path) -> Records:
    """A record a line; blank lines are none."""
    return ((number, line) for number, line in lines_of(file) if line.strip())


def json_file(file: Path) -> Records:
    """The records of an array or of one object over any number of lines, or those of JSON Lines."""
    first = next((line for _, line in lines_of(file) if line.strip()), "")
    if first.lstrip().startswith("{") and _parse(first) is not None:
        yield from json_lines(file)
        return
    text = "\n".join(line for _, line in lines_of(file))
    content = _parse(text)
    if content is None:
        raise ConfigError(f"{file} is not JSON: an array of records, or a record a line, is read")
    yield from enumerate(content if isinstance(content, list) else [content], 1)


def table(file: Path, separator: str = ",") -> Records:
    """The rows of a file whose first line has the names of the columns."""
    import pandas

    try:
        with pandas.read_csv(file, sep=separator, dtype=str, keep_default_na=False, chunksize=1000) as parts:
            yield from enumerate((row for part in parts for row in part.to_dict("records")), 1)
    except (ValueError, OSError, EOFError) as error:  # also of pandas' parser
        raise ConfigError(f"{file} cannot be read as a table: {error}") from error


def parquet(file: Path) -> Records:
    """The rows of a Parquet file, by the package `datasets`."""
    rows = hub.stream(str(file), "parquet", data_files=str(file), split="train")
    return enumerate(rows, 1)


READERS: dict[str, Callable[[Path], Records]] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": json_file,
    ".csv": table,
    ".tsv": lambda file: table(file, "\t"),
    ".parquet": parquet,
}


def reader_of(file: Path, first: str) -> Callable[[Path], Records] | None:
    """The reader of a file whose name says nothing, by its first line with text; None: it is plain text.

    Raises:
        ConfigError: markup, of which the text would be a small part.
    """
    first = first.strip()
    if first.lower().startswith(_MARKUP):
        raise ConfigError(
            f"{file} is markup, not text: extract its text first (from a dump of Wikipedia by wikiextractor --json), or"
            " leave it out"
        )
    if first.startswith("{") and isinstance(_parse(first), dict):
        return json_lines
    return json_file if first.startswith("[{") or first in ("[", "{") else None


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def text_of(record: Any, field: str, key: str) -> str:
    """The text of a record, or of a line of JSON; key names the setting of the field in errors.

    Raises:
        ConfigError: not a record, or none with text in this field.
    """
    if isinstance(record, str):
        try:
            record = json.loads(record)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"not a line of JSON: {error}") from error
    if not isinstance(record, dict):
        raise ConfigError(f"a {type(record).__name__}, not a record")
    text = record.get(field)
    if not isinstance(text, str):
        problem = f"has {text!r}, not text" if field in record else "is missing"
        raise ConfigError(f"{key}={field} {problem}; fields: {', '.join(map(str, record))}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"the text is badly encoded: {error}") from error
    return text
