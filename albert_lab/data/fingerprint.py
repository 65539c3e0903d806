"""Identity of a corpus: its settings and a hash of its text."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from albert_lab import paths
from albert_lab.config.data import CorpusConfig, HubDataset
from albert_lab.config.schema import digest
from albert_lab.data import files, hub
from albert_lab.data.lines import open_file
from albert_lab.errors import DamagedFileError, MissingDataError
from albert_lab.files import read_json
from albert_lab.storage import write_atomically


def settings(corpus: CorpusConfig) -> dict[str, Any]:
    """The settings that determine a corpus's documents; fingerprint() covers the text itself."""
    return corpus.model_dump(mode="json", exclude={"name", "path", "datasets"})


def source_settings(corpus: CorpusConfig) -> dict[str, Any]:
    """The settings that determine a corpus's source documents, their sentences and their train or dev split."""
    content = settings(corpus)
    if corpus.documents == "file":
        content["source_documents"] = "file"
    return {key: value for key, value in content.items() if key not in ("documents", "document_tokens")}


_REMEMBERED = "fingerprints.json"
_SMALL_BYTES = 1 << 20  # read at once, in half the time
# Digests known to this process: of a file by path, size, times and inode; of a data set by path.
digests: dict[str, str] = {}
_taken: ContextVar[dict[CorpusConfig | Path, str] | None] = ContextVar("_taken", default=None)


def fingerprint(corpus: CorpusConfig) -> str:
    """Short hash of the text of the corpus: of the names and contents of its files, or of its revisions on the Hub.

    Raises:
        MissingDataError: the path does not exist, or a package or data set is not available.
    """
    known = _taken.get()
    if known is None:
        return _take_fingerprint(corpus)
    if corpus not in known:
        known[corpus] = _take_fingerprint(corpus)
    return known[corpus]


def _take_fingerprint(corpus: CorpusConfig) -> str:
    if not digests:
        digests.update(remembered_fingerprints())
    if corpus.source == "hub":
        return digest([[dataset.name, dataset.split, _digest_dataset(dataset)] for dataset in hub.datasets_of(corpus)])
    return _digest_files(files.files_of(corpus))


@contextmanager
def fingerprints_taken_once() -> Iterator[None]:
    """Within this context, the files of a corpus or folder are looked at only once for all its fingerprints."""
    known = _taken.get()
    token = _taken.set({} if known is None else known)
    try:
        yield
    finally:
        _taken.reset(token)


def remember_fingerprints() -> None:
    """Writes this process's digests to the cache, so that the next process need not read the text again."""
    known = remembered_fingerprints()
    if digests.keys() <= known.keys():
        return
    file = paths.cache() / _REMEMBERED
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(known | digests, indent=0))


def remembered_fingerprints() -> dict[str, str]:
    """The digests that other processes wrote."""
    try:
        return read_json(paths.cache() / _REMEMBERED, dict[str, str])
    except DamagedFileError:  # or missing: the file only saves time, and is written again
        return {}


def digest_path(path: Path) -> str:
    """Short hash of a file, or of the names and contents of the files in a folder.

    Raises:
        MissingDataError: a file cannot be read.
    """
    known = {} if (taken := _taken.get()) is None else taken
    if path not in known:
        known[path] = _digest_files(files.walk(path)) if path.is_dir() else _digest_file(path)
    return known[path]


def _digest_files(named: list[tuple[str, Path]]) -> str:
    return digest([[name, _digest_file(file)] for name, file in named])


def _digest_file(file: Path) -> str:
    state = file.stat()
    # With the time of the last change of the inode, which no tool sets back, unlike that of the content.
    key = f"{file.absolute()}|{state.st_size}|{state.st_mtime_ns}|{state.st_ctime_ns}|{state.st_ino}"
    if key not in digests:
        try:
            with open_file(file) as stream:
                small = hashlib.blake2b(stream.read(), digest_size=16) if state.st_size < _SMALL_BYTES else None
                whole = small or hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16))
                digests[key] = whole.hexdigest()
        except OSError as error:
            raise MissingDataError(f"{file} cannot be read: {error.strerror}") from error
    return digests[key]


def _digest_dataset(dataset: HubDataset) -> str:
    folder = hub.local_folder(dataset)
    return _digest_files(files.walk(folder)) if folder else revision(dataset)


def revision(dataset: HubDataset) -> str:
    """The revision of a data set on the Hub; requested only once, so that a cache has one version.

    Raises:
        MissingDataError: the package `huggingface_hub` is not installed, or the Hub cannot be reached.
    """
    if dataset.path not in digests:
        digests[dataset.path] = hub.newest_revision(dataset)
    return digests[dataset.path]
