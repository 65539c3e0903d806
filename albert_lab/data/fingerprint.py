"""Identity of a corpus: its settings and a hash of its text."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from albert_lab import paths
from albert_lab.config.data import CorpusConfig, HubDataset
from albert_lab.config.schema import digest
from albert_lab.data import files
from albert_lab.errors import DamagedFileError, MissingDataError
from albert_lab.files import read_json
from albert_lab.storage import write_atomically

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
    return _once(corpus, lambda: digest([[of.name, of.split, revision(of)] for of in corpus.datasets]))


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


def digest_path(path: Path) -> str:
    """Short hash of a file, or of the names and contents of the files in a folder.

    Raises:
        MissingDataError: a file cannot be read.
    """
    return _once(path, lambda: _digest_files(files.walk(path)) if path.is_dir() else _digest_file(path))


def _digest_files(named: files.Named) -> str:
    return digest([[name, _digest_file(file)] for name, file in named])


def _digest_file(file: Path) -> str:
    state = file.stat()
    # With the time of the last change of the inode, which no tool sets back, unlike that of the content.
    return _digest_content(file, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


@cache
def _digest_content(file: Path, *_state: int) -> str:
    try:
        with open(files.checked(file), "rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise MissingDataError(f"{file} cannot be read: {error.strerror}") from error


def revision(dataset: HubDataset) -> str:
    """The newest revision of a data set on the Hub; requested only once, so that a cache has one version.

    Raises:
        MissingDataError: the package `huggingface_hub` is not installed, or the Hub cannot be reached.
    """
    file = paths.cache() / "fingerprints.json"
    try:
        known = read_json(file, dict[str, str])
    except DamagedFileError:  # or missing
        known = {}
    if dataset.path not in known:
        try:
            from huggingface_hub import HfApi

            known[dataset.path] = HfApi().dataset_info(dataset.path).sha or dataset.path
        except ImportError as error:
            raise MissingDataError(f"{dataset.path} needs a package: pip install 'albert-lab[hub]'") from error
        except Exception as error:  # the type of the error differs between versions of the transport
            raise MissingDataError(f"the data set {dataset.path} cannot be reached: {error}") from error
        write_atomically(file, json.dumps(known, indent=0))
    return known[dataset.path]
