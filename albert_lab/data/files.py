"""The text files of a corpus: from a package, a file, a folder or a glob."""

import importlib.util
import itertools
import os
from glob import has_magic
from pathlib import Path

from albert_lab import paths
from albert_lab.config.data import CorpusConfig
from albert_lab.data.lines import suffixes
from albert_lab.data.records import READERS
from albert_lab.errors import ConfigError, MissingDataError

Named = list[tuple[str, Path]]
_TEXT_SUFFIXES = ("", ".txt", ".jsonl")


def files_of(corpus: CorpusConfig) -> Named:
    """Name (relative, so that a moved folder keeps its fingerprint) and path of each file, sorted by name.

    Of several paths, those of the first come first.

    Raises:
        ConfigError: a link that leads nowhere, something that is no ordinary file, or a name that is not UTF-8.
        MissingDataError: the path does not exist or cannot be read, or its package is not installed.
    """
    key, files = f"{corpus.section}.path", []
    for path in [corpus.path] if isinstance(corpus.path, str) else corpus.path or ():
        try:
            files += _files_at(str(_in_package(corpus, path)) if corpus.source == "package" else path, key)
        except OSError as error:  # a path that is too long, or a folder that may not be read
            raise MissingDataError(f"{key}={path[:200]}: {error.filename or ''} {error.strerror}") from error
    return files


def _files_at(path: str, key: str) -> Named:
    if has_magic(path) and not Path(path).exists():
        return _matches(path, key)
    root = paths.expanded(path)
    if not root.exists():
        raise MissingDataError(f"{key}={path}: there is no {root.absolute()}")
    if not root.is_dir():
        return [(root.name, _checked(root))]
    files = walk(root)
    chosen = [named for named in files if suffixes(named[1])[0] in _TEXT_SUFFIXES]
    chosen = chosen or [named for named in files if suffixes(named[1])[0] in READERS]
    if not chosen:
        read = ", ".join(["no suffix", ".txt", *READERS])
        raise MissingDataError(f"{key}={path} has no file with {read}; a glob such as '{path}/*.md' reads any name")
    return chosen


def left_out(corpus: CorpusConfig) -> list[str]:
    """The names of the files in the folder of a corpus that are not read."""
    path = corpus.path
    if corpus.source != "files" or not isinstance(path, str) or not (root := paths.expanded(path)).is_dir():
        return []
    read = dict(files_of(corpus))
    return [name for name, _ in walk(root) if name not in read]


def _in_package(corpus: CorpusConfig, path: str) -> Path:
    package, _, inside = path.partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise MissingDataError(
            f"{corpus.section}.path={path}: with {corpus.section}={corpus.name} this is PACKAGE/FOLDER, and no package"
            f" {package} is installed; for text of your own give {corpus.section}=files too"
        )
    return Path(next(iter(spec.submodule_search_locations)), inside)


def _matches(pattern: str, key: str) -> Named:
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
    shown = [file for file in matches if with_hidden or not _is_hidden(file.relative_to(root))]
    files = [_checked(file) for file in shown if not file.is_dir()]
    if not files:
        raise MissingDataError(f"{key}={pattern}: no file matches (looked from {Path.cwd()})")
    top = os.path.commonpath([file.parent for file in files])
    return sorted((file.relative_to(top).as_posix(), file) for file in files)


def walk(folder: Path) -> Named:
    """Name and path of each file below a folder, except hidden files, sorted by name; links to folders are skipped.

    Raises:
        ConfigError: a path that cannot be read as a file: a link that leads nowhere, a FIFO or a socket.
        OSError: a folder below it may not be read.
    """
    root, files = folder.absolute(), []
    for place, folders, names in os.walk(root, onerror=_fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(place, name) for name in names if not name.startswith(".")]
    return sorted((file.relative_to(root).as_posix(), _checked(file)) for file in files)


def _fail(error: OSError) -> None:
    raise error


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _checked(file: Path) -> Path:
    if not file.is_file():
        what = "a link that leads to no file" if file.is_symlink() else "no ordinary file"
        raise ConfigError(f"{file.absolute()} is {what}: remove it, or hide it by a dot at the beginning of its name")
    if not file.name.isascii() and file.name.encode(errors="ignore").decode() != file.name:
        raise ConfigError(f"the name of the file {str(file)!r} is not UTF-8: rename it")
    return file.absolute()
