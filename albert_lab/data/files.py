"""The text files of a corpus: their identity, and their lines and records, unpacked and decoded as
they are read.
"""

import bz2
import csv
import gzip
import hashlib
import importlib.util
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from glob import has_magic
from os.path import splitext
from pathlib import Path
from typing import Any

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.config.schema import digest
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import is_ordinary

Named = list[tuple[str, Path]]
# Number (of a line or of a record, from 1) and content: a record, or a line of JSON.
Records = Iterator[tuple[int, Any]]
COMPRESSION: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_MARKUP = ("<?xml", "<!doctype", "<html", "<mediawiki", "<tei", "<rss", "<doc ")
_REMEDY = (
    "name files *.gz, *.bz2, *.xz or *.parquet as what they are, and convert encodings by iconv -t "
    "UTF-8"
)
# Suffixes of common formats that are not read, and what makes text of such files.
_UNREAD = (".arrow", ".pdf", ".docx", ".odt", ".epub", ".rtf", ".zip", ".tar", ".tgz", ".zst")
_CONVERTERS = (
    "pdftotext or pandoc -t plain makes text of a document, tar or unzip unpacks an archive, and "
    "datasets.load_from_disk(FOLDER).to_parquet('NAME.parquet') makes a table of what datasets "
    "saved"
)


# ---- which files ----


def files_of(corpus: CorpusConfig) -> Named:
    """Name (relative, so that a moved folder keeps its fingerprint) and path of each file, sorted
    by name.

    Of several paths, those of the first come first. A folder gives its plain text or, if it has
    none, its tables.

    Raises:
        ConfigError: a link that leads nowhere, something that is no ordinary file, or of a format
            that is not read as text.
        UnicodeEncodeError: a name that is not UTF-8.
        MissingDataError: the path does not exist or cannot be read, or its package is not
            installed.
    """
    files: Named = []
    for path in corpus.paths:
        setting = f"{corpus.section}.path={path[:200]}"
        root = _in_package(corpus, path) if corpus.source == "package" else paths.expanded(path)
        try:
            named = _text_below(root) if root.is_dir() else _matches(root)
        except OSError as error:  # a path that is too long, or a folder that may not be read
            raise MissingDataError(f"{setting}: {error.filename or ''} {error.strerror}") from error
        if not named:
            raise MissingDataError(
                f"{setting}: there is no text at {root.absolute()}; of a folder, names with no "
                f"suffix, .txt or {', '.join(READERS)} are read, any name by a glob ('*.md')"
            )
        for _, file in named:
            if suffixes(file)[0] in _UNREAD:
                raise ConfigError(f"{setting}: {file} is not read as text: {_CONVERTERS}")
        files += named
    return files


def _text_below(folder: Path) -> Named:
    """The plain text below a folder, which may be among other files, or else its tables, or else
    what can be converted.

    Of a folder that datasets saved, its .arrow files: the JSON beside them is about them.
    """
    below = walk(folder)
    for formats in ((".arrow",), ("", ".txt", ".jsonl"), tuple(READERS), _UNREAD):
        named = [(name, file) for name, file in below if suffixes(file)[0] in formats]
        if named:
            return named
    return []


def _in_package(corpus: CorpusConfig, path: str) -> Path:
    """The folder or file of an installed package, which need not be there."""
    package, _, inside = path.partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        key = corpus.section
        raise MissingDataError(
            f"{key}.path={path} is in no installed package: for text of your own give {key}=files"
        )
    return Path(spec.submodule_search_locations[0], inside)


def _matches(pattern: Path) -> Named:
    """The file of this name, or the files that match a glob; hidden ones only by a name."""
    if pattern.exists():
        return [(pattern.name, checked(pattern))]
    root = pattern
    while has_magic(str(root)):
        root = root.parent
    if root == pattern:
        return []
    try:
        # Unlike glob.glob(), it does not follow links to folders below **, which can lead back or
        # out of the folder.
        matches = {*root.glob(str(pattern.relative_to(root)))}
    except ValueError as error:  # ** beside other letters
        raise ConfigError(f"{pattern}: {error}") from error
    files: list[Path] = []
    for match in matches:
        is_hidden = "/." in f"/{match.relative_to(root).as_posix()}"
        if not is_hidden and not match.is_dir():
            files.append(checked(match))
    top = os.path.commonpath([file.parent for file in files]) if files else root
    return sorted((file.relative_to(top).as_posix(), file) for file in files)


def walk(folder: Path) -> Named:
    """Name and path of each file below a folder, except hidden files, sorted by name; links to
    folders are skipped.

    Raises:
        ConfigError: a path that cannot be read as a file: a link that leads nowhere, a FIFO or a
            socket.
        OSError: a folder below it may not be read.
    """
    named: Named = []
    for parent, folders, names in os.walk(folder, onerror=_fail):  # which follows no links
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                file = Path(parent, name)
                named.append((file.relative_to(folder).as_posix(), checked(file)))
    return sorted(named)


def _fail(error: OSError) -> None:
    raise error


def checked(file: Path) -> Path:
    """The absolute path of a file that can be read to its end, or that is not there.

    Raises:
        ConfigError: a link that leads nowhere, a FIFO, a socket, a device or a file of /proc, which
            may have no end.
        UnicodeEncodeError: a name that is not UTF-8, of which fingerprints are made.
    """
    if not is_ordinary(file):
        raise ConfigError(
            f"{file.absolute()} is no file, nor a link to one: name another one, or move it out of "
            "the folder that is read"
        )
    file.name.encode()
    return file.absolute()


# ---- identity ----


def text_settings(corpus: CorpusConfig) -> dict[str, Any]:
    """The settings that determine a corpus's documents; fingerprint() covers the text itself."""
    return corpus.model_dump(mode="json", exclude={"name", "path", "datasets"})


# A process looks at files once, as many take seconds and a study has many runs; clear() lets it
# look again.
known_digests: dict[CorpusConfig, str] = {}


def fingerprint(corpus: CorpusConfig) -> str:
    """Short hash of the text of the corpus: of the names and contents of its files; with the errors
    of files_of().
    """
    if corpus not in known_digests:
        known_digests[corpus] = _digest_files(files_of(corpus))
    return known_digests[corpus]


@cache
def digest_path(path: Path) -> str:
    """Short hash of a file, or of the names and contents of the files in a folder; or
    MissingDataError.
    """
    return _digest_files(walk(path)) if path.is_dir() else _digest_file(checked(path))


def _digest_files(named: Named) -> str:
    return digest([[name, _digest_file(file)] for name, file in named])


def _digest_file(file: Path) -> str:
    try:
        with open(file, "rb", buffering=0) as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise MissingDataError(f"{file} cannot be read: {error.strerror}") from error


# ---- lines ----


def suffixes(file: Path) -> tuple[str, str]:
    """The suffix of the format, and that of the compression (empty if none)."""
    stem, last = splitext(file.name.lower())
    return (splitext(stem)[1], last) if last in COMPRESSION else (last, "")


def lines_of(file: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line, decompressed and decoded as it is read.

    Raises:
        ConfigError: binary, badly encoded or damaged, or it cannot be opened; with file and line.
    """
    number = 0
    unpack = COMPRESSION.get(suffixes(file)[1], nullcontext)
    try:
        with open(checked(file), "rb") as packed, unpack(packed) as content:
            for number, line in enumerate(content, 1):
                if b"\0" in line:
                    raise ConfigError(
                        f"{file}:{number}: binary (a NUL byte), not UTF-8 text: {_REMEDY}"
                    )
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{file}:{number}: not UTF-8 (byte {error.start} of the line): {_REMEDY}"
        ) from error
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise ConfigError(
            f"{file} cannot be read, or is damaged: {error} (after line {number})"
        ) from error


# ---- records ----


def _json(file: Path) -> Records:
    """The records of an array over any number of lines, or a record a line."""
    if suffixes(file)[0] in (".jsonl", ".ndjson") or isinstance(_parse(_first_line(file)), dict):
        return ((number, line) for number, line in lines_of(file) if line.strip())
    content = _parse("\n".join(line for _, line in lines_of(file)))
    if not isinstance(content, list):
        raise ConfigError(f"{file} is not JSON: an array of records, or a record a line, is read")
    return enumerate(content, 1)


def csv_rows(file: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the last line of each row, and its cells; csv.Error if they are not quoted as
    CSV says.
    """
    reader = csv.reader(
        (f"{line}\n" for _, line in lines_of(file)), delimiter=separator, strict=True
    )
    return ((reader.line_num, row) for row in reader)


def _table(file: Path) -> Records:
    """The rows of a .parquet, or of a .csv or .tsv whose first line has the names of the
    columns.
    """
    read = _parquet if suffixes(file)[0] == ".parquet" else _separated
    try:
        yield from enumerate(read(file), 1)
    except ImportError as error:
        raise MissingDataError(f"{file} needs a package: pip install -e '.[parquet]'") from error
    except ConfigError:
        raise
    except (ValueError, OSError, csv.Error) as error:  # also of the parsers
        raise ConfigError(
            f"{file} cannot be read as a table: {error}; correct it, or write JSON Lines"
        ) from error


def _parquet(file: Path) -> Iterator[dict[str, Any]]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as table:
        for part in table.iter_batches(1000):
            yield from part.to_pylist()


def _separated(file: Path) -> Iterator[dict[str, str]]:
    separator = "\t" if suffixes(file)[0] == ".tsv" else ","
    rows = (row for _, row in csv_rows(file, separator))
    names = next(rows, [])
    for number, row in enumerate(filter(None, rows), 1):
        # A quotation mark that opens no quoted cell joins cells, and perhaps lines, into one.
        is_joined = separator == "\t" and any(separator in cell for cell in row)
        if len(row) != len(names) or is_joined:
            raise ValueError(
                f"row {number} has not as many cells as the first line, or a quoted cell has "
                "several"
            )
        yield dict(zip(names, row, strict=True))


csv.field_size_limit(2**31 - 1)  # a cell may hold a book
READERS: dict[str, Callable[[Path], Records]] = dict.fromkeys((".jsonl", ".ndjson", ".json"), _json)
READERS |= dict.fromkeys((".csv", ".tsv", ".parquet"), _table)


def reader_of(file: Path) -> Callable[[Path], Records] | None:
    """The reader of a file by its suffix or, if that says nothing, by its first line with text;
    None: it is plain text.

    Raises:
        ConfigError: markup, of which the text would be a small part.
    """
    suffix = suffixes(file)[0]
    if suffix in READERS:
        return READERS[suffix]
    first = _first_line(file)
    if first.lower().startswith(_MARKUP):
        raise ConfigError(
            f"{file} is markup: extract its text (of Wikipedia by wikiextractor --json), or leave "
            "it out"
        )
    is_json = isinstance(_parse(first), dict) or first.startswith("[{") or first in ("[", "{")
    return _json if is_json else None


def _first_line(file: Path) -> str:
    """The first line with text; empty if there is none."""
    return next((line.strip() for _, line in lines_of(file) if line.strip()), "")


def _parse(text: str) -> Any:
    """The content of a JSON array or object; None if it is none."""
    try:
        return json.loads(text) if text.lstrip().startswith(("[", "{")) else None
    except (ValueError, RecursionError):
        return None


def text_of(record: Any, corpus: CorpusConfig) -> str:
    """The text of a record, or of a line of JSON.

    Raises:
        ConfigError: not a record, or none with text in this field; with its beginning.
    """
    try:
        content = json.loads(record) if isinstance(record, str) else record
        content[corpus.text_field].encode()
        return content[corpus.text_field]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        key = f"{corpus.section}.text_field={corpus.text_field}"
        raise ConfigError(
            f"{key} names no text in UTF-8; the record: {str(record)[:200]}"
        ) from error
