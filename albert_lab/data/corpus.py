"""Where text comes from: source documents in a stable order, their split, their documents and cleaned sentences."""

import hashlib
import importlib.util
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import sentencex

from albert_lab import paths
from albert_lab.config.schema import AddedCorpusConfig, CorpusConfig, HubDataset, digest
from albert_lab.data.lines import COMPRESSION, lines_of, open_file, suffixes
from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.files import read_json
from albert_lab.storage import write_atomically

Split = Literal["train", "dev"]

_TEXT_SUFFIXES = {"", ".txt", ".jsonl"}
_segment: Callable[[str, str], list[str]] = sentencex.segment  # pyright: ignore[reportAttributeAccessIssue]  # no stubs


@dataclass(frozen=True)
class Document:
    """One raw document, neither cleaned nor split; its lines are paragraphs or sentences, as corpus.sentences says.

    Attributes:
        name: file:line or data set:row.
        blocks: Its text, split at blank lines if these may end a document; a record is one block.
    """

    name: str
    blocks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(self.blocks)


def iterate(corpus: CorpusConfig) -> Iterator[Document]:
    """Source documents: each is held out or trained on as a whole; documents_of() splits them.

    Files come in the order of their names; repetitions are included. The largest source document bounds the memory.

    Raises:
        ConfigError: an empty, binary, damaged or badly encoded file, or a record without text; with file and line.
        MissingDataError: nothing is at the path, or a package or data set cannot be had.
    """
    if corpus.source == "hub":
        for dataset in _datasets(corpus):
            yield from _hub_documents(dataset, corpus.text_field)
        return
    files = _files(corpus)
    by_file = _ends_with_file(corpus, sum(suffixes(file)[0] != ".jsonl" for _, file in files))
    for name, file in files:
        documents = _records(file, corpus.text_field) if suffixes(file)[0] == ".jsonl" else _plain(file, by_file)
        first = next(documents, None)
        if first is None:
            raise ConfigError(f"{file} is empty")
        for line, blocks in chain([first], documents):
            yield Document(f"{name}:{line}", blocks)


def documents_of(source: Document, corpus: CorpusConfig) -> list[Document]:
    """The documents of a source document, as corpus.documents says.

    A paragraph is a line; with corpus.sentences=line, it is the text between blank lines.
    """
    if corpus.documents == "file":
        return [source]
    texts: Iterable[str] = source.blocks
    if corpus.documents == "paragraph":
        end = "\n" if corpus.sentences == "split" else r"\n\s*\n"
        texts = (text for block in source.blocks for text in re.split(end, block) if text.strip())
    return [Document(source.name, (text,)) for text in texts]


def added_to(corpus: CorpusConfig, added: AddedCorpusConfig) -> CorpusConfig | None:
    """The added text as a corpus of its own, cleaned and split like the main corpus; None if there is none."""
    return None if added.source == "none" else corpus.model_copy(update=dict(added))


def distinct(documents: Iterable[Document], counts: Counter[str], seen: set[int] | None = None) -> Iterator[Document]:
    """The documents whose text has not come before, in their order.

    Args:
        documents: Raw documents.
        counts: Receives "documents" (all that went in) and "duplicates" (those left out).
        seen: Hashes of texts that came before, and receives those of these; None: nothing came before.
    """
    seen = set() if seen is None else seen
    for document in documents:
        key = _hash(document.text)
        counts["documents"] += 1
        if key in seen:
            counts["duplicates"] += 1
            continue
        seen.add(key)
        yield document


def split_of(text: str, dev_share: float) -> Split:
    """The split of a source document: it depends on its text only, so other documents never change it."""
    return "dev" if _hash(text) < dev_share * 2**64 else "train"


def empty_split(split: Split, num_documents: int, corpus: CorpusConfig) -> ConfigError:
    """The error that says why a split has no document."""
    return ConfigError(
        f"corpus={corpus.name} has {num_documents} different documents with text, but none in the {split} split at"
        f" corpus.dev_share={corpus.dev_share}: give more source documents or another share; corpus.source_documents="
        f"{corpus.source_documents} says what ends one"
        + ("; paragraphs of one sentence do not count" if corpus.documents == "paragraph" else "")
    )


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def clean(text: str, corpus: CorpusConfig) -> str:
    """The text with single spaces, without accents and in lower case, as the corpus asks.

    Source: preprocess_text in tokenization.py of the release, which drops characters that have a combining class.
    """
    text = " ".join(text.split())
    if corpus.strip_accents and not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return text.lower() if corpus.lower_case else text


def raw_sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Sentences of a document before cleaning: the splitter reads capital letters."""
    lines = text.split("\n")
    if corpus.sentences == "line":
        return iter(lines)
    return chain.from_iterable(_segment(corpus.language, line) for line in lines)


def sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Cleaned sentences of a raw document; none is empty."""
    cleaned = (clean(sentence, corpus) for sentence in raw_sentences(text, corpus))
    return (sentence for sentence in cleaned if sentence.strip())


def raw_bytes(corpus: CorpusConfig) -> int | None:
    """Bytes of text behind the corpus, estimated if it is compressed; None for a data set of the Hub.

    Raises:
        MissingDataError: nothing is at the path, or the package is not installed.
    """
    if corpus.source == "hub":
        folders = [_local_folder(dataset) for dataset in _datasets(corpus)]
        files = [file for folder in folders if folder for _, file in _walk(folder)]
        return None if None in folders else sum(file.stat().st_size for file in files)
    return int(sum(file.stat().st_size * COMPRESSION.get(suffixes(file)[1], 1) for _, file in _files(corpus)))


def settings(corpus: CorpusConfig) -> dict[str, Any]:
    """What decides a corpus's documents, apart from the text itself, which fingerprint() covers."""
    return corpus.model_dump(mode="json", exclude={"name", "path", "datasets"})


def source_settings(corpus: CorpusConfig) -> dict[str, Any]:
    """What decides a corpus's source documents, their sentences and splits; how they are split does not."""
    content = settings(corpus)
    if corpus.documents == "file":
        content["source_documents"] = "file"
    return {key: value for key, value in content.items() if key not in ("documents", "document_tokens")}


# ---- files ----


def _files(corpus: CorpusConfig) -> list[tuple[str, Path]]:
    """Name (relative, so that a moved folder keeps its fingerprint) and path of each text file, sorted by name."""
    if corpus.path is None:
        raise ConfigError(f"corpus.path must be given where corpus.source is {corpus.source}")
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
    found = [(name, file) for name, file in _walk(root) if suffixes(file)[0] in _TEXT_SUFFIXES]
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


def _walk(folder: Path) -> list[tuple[str, Path]]:
    named = ((file.relative_to(folder), file) for file in folder.rglob("*") if file.is_file())
    return sorted((name.as_posix(), file) for name, file in named if not any(p.startswith(".") for p in name.parts))


def _ends_with_file(corpus: CorpusConfig, num_files: int) -> bool:
    """Whether a source document in plain text is a whole file; otherwise a blank line ends it.

    auto: where there are so many files that about two or more of them are held out.
    """
    if corpus.documents == "file" or corpus.source_documents == "file":
        return True
    return corpus.source_documents == "auto" and num_files * corpus.dev_share >= 2


def plain_files(corpus: CorpusConfig) -> int:
    """How many files of plain text a corpus has, whose documents nothing but blank lines and their ends mark."""
    if corpus.source == "hub":
        return 0
    files = [file for _, file in _files(corpus) if suffixes(file)[0] != ".jsonl"]
    has_sections = bool(files) and next((line for _, line in lines_of(files[0])), "").startswith("<doc ")
    return 0 if has_sections else len(files)


def holds_out_parts(corpus: CorpusConfig, num_files: int) -> bool:
    """Whether so many files of plain text are held out in parts, though nobody asked for it."""
    return corpus.source_documents == "auto" and not _ends_with_file(corpus, num_files)


def _plain(file: Path, by_file: bool) -> Iterator[tuple[int, tuple[str, ...]]]:
    """First line and blocks of each source document: a `<doc>` section of WikiExtractor, a file, or one block."""
    start, blocks, lines, in_section = 1, [], [], False
    for number, line in lines_of(file):
        tag = line.startswith(("<doc ", "</doc>"))
        if tag:
            in_section = line.startswith("<doc ")
        blank = not line.strip()
        if tag or (blank and not in_section):
            if lines:
                blocks.append("\n".join(lines))
                lines = []
            if blocks and (tag or not by_file):
                yield start, tuple(blocks)
                blocks = []
        elif not blank:
            if not lines and not blocks:
                start = number
            lines.append(line)
    if lines:
        blocks.append("\n".join(lines))
    if blocks:
        yield start, tuple(blocks)


def _records(file: Path, field: str) -> Iterator[tuple[int, tuple[str]]]:
    for number, line in lines_of(file):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file}:{number}: not a line of JSON: {error}") from error
        yield number, (_text_of(record, field, f"{file}:{number}"),)


def _text_of(record: Any, field: str, place: str) -> str:
    if not isinstance(record, dict):
        raise ConfigError(f"{place}: not a record but a {type(record).__name__}")
    text = record.get(field)
    if not isinstance(text, str):
        problem = f"has {text!r}, not text" if field in record else "is missing"
        raise ConfigError(f"{place}: corpus.text_field={field} {problem}; fields: {', '.join(map(str, record))}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{place}: the text is badly encoded: {error}") from error
    return text


# ---- data sets of the Hub ----


def _datasets(corpus: CorpusConfig) -> tuple[HubDataset, ...]:
    if not corpus.datasets:
        raise ConfigError("corpus.datasets must name at least one data set where corpus.source is hub")
    return corpus.datasets


def _local_folder(dataset: HubDataset) -> Path | None:
    folder = Path(dataset.path).expanduser()
    return folder.absolute() if folder.is_dir() else None


def _hub_documents(dataset: HubDataset, field: str) -> Iterator[Document]:
    try:
        import datasets
        import datasets.config
    except ImportError as error:
        raise _not_installed(dataset) from error
    # With torch at hand it would import it, and make a stream a data set of torch.
    datasets.config.TORCH_AVAILABLE = False
    folder = _local_folder(dataset)
    path, revision = (str(folder), None) if folder else (dataset.path, _digest_dataset(dataset))
    try:
        rows = datasets.load_dataset(path, dataset.name, split=dataset.split, streaming=True, revision=revision)
        for number, row in enumerate(rows):
            place = f"{dataset.path}:{number}"
            yield Document(place, (_text_of(row, field, place),))
    except ConfigError:
        raise
    except OSError as error:
        raise _unreachable(dataset, error) from error
    except ValueError as error:
        raise ConfigError(f"corpus.datasets: {dataset.path} ({dataset.name}, {dataset.split}): {error}") from error


def _not_installed(dataset: HubDataset) -> MissingDataError:
    return MissingDataError(f"{dataset.path} needs the package datasets: pip install 'albert-lab[hub]'")


def _unreachable(dataset: HubDataset, error: Exception) -> MissingDataError:
    return MissingDataError(f"the data set {dataset.path} cannot be reached: {error}")


# ---- fingerprints ----

# Digests of content that this process knows: of a file by its path, size and time of change; of a data set by its path.
_digests: dict[str, str] = {}
_taken: ContextVar[dict[CorpusConfig, str] | None] = ContextVar("_taken", default=None)


def fingerprint(corpus: CorpusConfig) -> str:
    """Short hash of the text behind the corpus: of the names and contents of its files, or the Hub's own versions.

    Raises:
        MissingDataError: nothing is at the path, or a package or data set cannot be had.
    """
    known = _taken.get()
    if known is None:
        return _take_fingerprint(corpus)
    if corpus not in known:
        known[corpus] = _take_fingerprint(corpus)
    return known[corpus]


def _take_fingerprint(corpus: CorpusConfig) -> str:
    if not _digests:
        _digests.update(remembered_fingerprints())
    if corpus.source == "hub":
        return digest([[dataset.name, dataset.split, _digest_dataset(dataset)] for dataset in _datasets(corpus)])
    return _digest_files(_files(corpus))


@contextmanager
def fingerprints_taken_once() -> Iterator[None]:
    """Within this context, the files of a corpus are read once for all of its fingerprints."""
    known = _taken.get()
    token = _taken.set({} if known is None else known)
    try:
        yield
    finally:
        _taken.reset(token)


def remember_fingerprints() -> None:
    """Writes the digests this process has made to the cache, so that the next one need not read the text for them."""
    known = remembered_fingerprints()
    if _digests.keys() <= known.keys():
        return
    file = _remembered_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(known | _digests, indent=0))


def _remembered_file() -> Path:
    return paths.cache() / "fingerprints.json"


def remembered_fingerprints() -> dict[str, str]:
    try:
        return read_json(_remembered_file(), dict[str, str])
    except DamagedFileError:  # or not there yet: it only saves reading the text, and is written again
        return {}


def _digest_files(files: list[tuple[str, Path]]) -> str:
    return digest([[name, _digest_file(file)] for name, file in files])


def _digest_file(file: Path) -> str:
    state = file.stat()
    key = f"{file.absolute()}|{state.st_size}|{state.st_mtime_ns}"
    if key not in _digests:
        try:
            with open_file(file) as stream:
                _digests[key] = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        except OSError as error:
            raise MissingDataError(f"{file} cannot be read: {error.strerror}") from error
    return _digests[key]


def _digest_dataset(dataset: HubDataset) -> str:
    """Digest of a local folder's files, or the Hub's revision: asked for once, so that a cache has one version."""
    folder = _local_folder(dataset)
    if folder:
        return _digest_files(_walk(folder))
    if dataset.path not in _digests:
        _digests[dataset.path] = _ask_revision(dataset)
    return _digests[dataset.path]


def _ask_revision(dataset: HubDataset) -> str:
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise _not_installed(dataset) from error
    try:
        return HfApi().dataset_info(dataset.path).sha or dataset.path
    except Exception as error:  # what the transport raises differs between its versions
        raise _unreachable(dataset, error) from error
