"""Identity of a corpus: its settings and a hash of its text."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from albert_lab.config.data import CorpusConfig
from albert_lab.config.schema import digest
from albert_lab.data import files
from albert_lab.errors import MissingDataError

_taken: list[dict[CorpusConfig | Path, str]] = []  # fingerprints within fingerprints_taken_once()


def settings(corpus: CorpusConfig) -> dict[str, Any]:
    """The settings that determine a corpus's documents; fingerprint() covers the text itself."""
    return corpus.model_dump(mode="json", exclude={"name", "path", "datasets"})


def source_settings(corpus: CorpusConfig) -> dict[str, Any]:
    """The settings that determine a corpus's source documents, their sentences and their train or dev split."""
    content = settings(corpus)
    if corpus.documents == "file":
        content["source_documents"] = "file"
    return {key: value for key, value in content.items() if key not in ("documents", "document_tokens")}


def fingerprint(corpus: CorpusConfig) -> str:
    """Short hash of the text of the corpus: of the names and contents of its files.

    Raises:
        MissingDataError: the path does not exist, or a package is not available.
    """
    return _once(corpus, lambda: files.files_of(corpus))


def digest_path(path: Path) -> str:
    """Short hash of a file, or of the names and contents of the files in a folder.

    Raises:
        MissingDataError: a file cannot be read.
    """
    return _once(path, lambda: files.walk(path)) if path.is_dir() else _digest_file(files.checked(path))


@contextmanager
def fingerprints_taken_once() -> Iterator[None]:
    """Within this context, the files of a corpus or folder are looked at only once for all its fingerprints."""
    _taken.append(_taken[-1] if _taken else {})
    try:
        yield
    finally:
        _taken.pop()


def _once(key: CorpusConfig | Path, find: Callable[[], files.Named]) -> str:
    known = _taken[-1] if _taken else {}
    if key not in known:
        known[key] = digest([[name, _digest_file(file)] for name, file in find()])
    return known[key]


def _digest_file(file: Path) -> str:
    state = file.stat()
    # With the time of the last change of the inode, which no tool sets back, unlike that of the content.
    return _digest_content(file, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


@cache
def _digest_content(file: Path, *_state: int) -> str:
    try:
        with open(file, "rb", buffering=0) as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise MissingDataError(f"{file} cannot be read: {error.strerror}") from error
