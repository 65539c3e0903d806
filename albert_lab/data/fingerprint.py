"""Identity of a corpus: its settings and a hash of its text."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from albert_lab import paths
from albert_lab.config.data import CorpusConfig, HubDataset
from albert_lab.config.schema import digest
from albert_lab.data import files
from albert_lab.data.files import open_file
from albert_lab.errors import DamagedFileError, MissingDataError
from albert_lab.files import read_json
from albert_lab.storage import write_atomically

_FILE = "fingerprints.json"
# Digests known to this process: of a file by path, size, times and inode; of a data set by path.
digests: dict[str, str] = {}
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
    """Short hash of the text of the corpus: of the names and contents of its files, or of its revisions on the Hub.

    Raises:
        MissingDataError: the path does not exist, or a package or data set is not available.
    """
    if corpus.source != "hub":
        return _once(corpus, lambda: _digest_files(files.files_of(corpus)))
    return _once(corpus, lambda: digest([[of.name, of.split, _digest_dataset(of)] for of in corpus.datasets]))


@contextmanager
def fingerprints_taken_once() -> Iterator[None]:
    """Within this context, the files of a corpus or folder are looked at only once for all its fingerprints."""
    _taken.append(_taken[-1] if _taken else {})
    try:
        yield
    finally:
        _taken.pop()


def _once(key: CorpusConfig | Path, take: Callable[[], str]) -> str:
    known = _taken[-1] if _taken else {}
    if key not in known:
        known[key] = take()
    return known[key]


def remember_fingerprints() -> None:
    """Writes this process's digests to the cache, so that the next process need not read the text again."""
    known = remembered_fingerprints()
    if not digests.keys() <= known.keys():
        write_atomically(paths.cache() / _FILE, json.dumps(known | digests, indent=0))


def remembered_fingerprints() -> dict[str, str]:
    """The digests that other processes wrote."""
    try:
        return read_json(paths.cache() / _FILE, dict[str, str])
    except DamagedFileError:  # or missing: the file only saves time, and is written again
        return {}


def digest_path(path: Path) -> str:
    """Short hash of a file, or of the names and contents of the files in a folder.

    Raises:
        MissingDataError: a file cannot be read.
    """
    return _once(path, lambda: _digest_files(files.walk(path)) if path.is_dir() else _digest_file(path))


def _digest_files(named: list[tuple[str, Path]]) -> str:
    return digest([[name, _digest_file(file)] for name, file in named])


def _digest_file(file: Path) -> str:
    if not digests:
        digests.update(remembered_fingerprints())
    state = file.stat()
    # With the time of the last change of the inode, which no tool sets back, unlike that of the content.
    key = f"{file.absolute()}|{state.st_size}|{state.st_mtime_ns}|{state.st_ctime_ns}|{state.st_ino}"
    if key not in digests:
        try:
            with open_file(file) as stream:
                digests[key] = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        except OSError as error:
            raise MissingDataError(f"{file} cannot be read: {error.strerror}") from error
    return digests[key]


def _digest_dataset(dataset: HubDataset) -> str:
    folder = local_folder(dataset)
    return _digest_files(files.walk(folder)) if folder else revision(dataset)


def local_folder(dataset: HubDataset) -> Path | None:
    """The folder of a data set whose path is a folder on this machine; None otherwise."""
    folder = paths.expanded(dataset.path)
    return folder.absolute() if folder.is_dir() else None


def revision(dataset: HubDataset) -> str:
    """The newest revision of a data set on the Hub; requested only once, so that a cache has one version.

    Raises:
        MissingDataError: the package `huggingface_hub` is not installed, or the Hub cannot be reached.
    """
    if not digests:
        digests.update(remembered_fingerprints())
    if dataset.path not in digests:
        try:
            from huggingface_hub import HfApi

            digests[dataset.path] = HfApi().dataset_info(dataset.path).sha or dataset.path
        except ImportError as error:
            raise MissingDataError(f"{dataset.path} needs a package: pip install 'albert-lab[hub]'") from error
        except Exception as error:  # the type of the error differs between versions of the transport
            raise MissingDataError(f"the data set {dataset.path} cannot be reached: {error}") from error
    return digests[dataset.path]
