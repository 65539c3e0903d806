"""Records of the formats that are read: one reader a format, by the suffix of a file's name or by its first line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from albert_lab.data.lines import lines_of, suffixes
from albert_lab.errors import ConfigError, MissingDataError

# Number (of a line or of a record, from 1) and content: a record, or a line of JSON.
Records = Iterator[tuple[int, Any]]
_MARKUP = ("<?xml", "<!doctype", "<html", "<mediawiki", "<tei", "<rss")


def json_lines(file: Path) -> Records:
    """A record a line; blank lines are none."""
    return ((number, line) for number, line in lines_of(file) if line.strip())


def json_file(file: Path) -> Records:
    """The records of an array or of one object over any number of lines, or those of JSON Lines."""
    if isinstance(_parse(_first_line(file)), dict):
        return json_lines(file)
    content = _parse("\n".join(line for _, line in lines_of(file)))
    if content is None:
        raise ConfigError(f"{file} is not JSON: an array of records, or a record a line, is read")
    return enumerate(content if isinstance(content, list) else [content], 1)


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
    return enumerate(stream(str(file), "parquet", data_files=str(file), split="train"), 1)


def stream(what: str, path: str, **settings: Any) -> Iterator[Any]:
    """The rows that datasets.load_dataset(path, ...) streams; what names them in errors.

    Raises:
        ConfigError: there is no such subset or split, or the file is damaged.
        MissingDataError: the package `datasets` is not installed, or the data set cannot be reached.
    """
    try:
        import datasets
        import datasets.config
    except ImportError as error:
        raise MissingDataError(f"{what} needs the package datasets: pip install 'albert-lab[hub]'") from error
    # Otherwise `datasets` imports torch if it is installed, and makes a stream a data set of torch.
    datasets.config.TORCH_AVAILABLE = False
    try:
        yield from datasets.load_dataset(path, streaming=True, **settings)
    except OSError as error:
        raise MissingDataError(f"the data set {what} cannot be reached: {error}") from error
    except ValueError as error:
        part = ", ".join(f"{key}={settings[key]}" for key in ("name", "split") if settings.get(key))
        raise ConfigError(f"{what} ({part}): {error}") from error


READERS: dict[str, Callable[[Path], Records]] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": json_file,
    ".csv": table,
    ".tsv": lambda file: table(file, "\t"),
    ".parquet": parquet,
}


def reader_of(file: Path) -> Callable[[Path], Records] | None:
    """The reader of a file by its suffix or, if that says nothing, by its first line with text; None: it is plain text.

    Raises:
        ConfigError: markup, of which the text would be a small part.
    """
    if reader := READERS.get(suffixes(file)[0]):
        return reader
    first = _first_line(file)
    if first.lower().startswith(_MARKUP):
        raise ConfigError(
            f"{file} is markup, not text: extract its text first (from a dump of Wikipedia by wikiextractor --json), or"
            " leave it out"
        )
    is_json = isinstance(_parse(first), dict) or first.startswith("[{") or first in ("[", "{")
    return json_file if is_json else None


def _first_line(file: Path) -> str:
    return next((line.strip() for _, line in lines_of(file) if line.strip()), "")


def _parse(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip().startswith(("[", "{")) else None
    except (ValueError, RecursionError):
        return None


def text_of(record: Any, field: str, key: str) -> str:
    """The text of a record, or of a line of JSON; key names the setting of the field in errors.

    Raises:
        ConfigError: not a record, or none with text in this field.
    """
    try:
        record = json.loads(record) if isinstance(record, str) else record
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not a line of JSON: {error}") from error
    text = record.get(field) if isinstance(record, dict) else None
    if not isinstance(text, str):
        has = ", ".join(map(str, record)) if isinstance(record, dict) else f"none, a {type(record).__name__}"
        raise ConfigError(f"{key}={field} is missing or no text; fields: {has}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"the text is badly encoded: {error}") from error
    return text
