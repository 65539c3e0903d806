"""Source documents of a corpus in a stable order, their train or dev split, and the documents within them."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from albert_lab.config.data import AddedCorpusConfig, AddedText, CorpusConfig
from albert_lab.data import hub
from albert_lab.data.files import files_of, walk
from albert_lab.data.fingerprint import revision
from albert_lab.data.lines import COMPRESSION, lines_of, suffixes
from albert_lab.errors import ConfigError

Split = Literal["train", "dev"]

# A part of a document with fewer words may be in two documents by chance.
FEWEST_WORDS = 10


@dataclass(frozen=True)
class Document:
    """One raw document, neither cleaned nor split; corpus.sentences sets whether a line is a paragraph or a sentence.

    Attributes:
        name: file:line or data set:row.
        blocks: Its text, split at blank lines if a blank line may end a document; a record is one block.
    """

    name: str
    blocks: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.blocks)


def iterate(corpus: CorpusConfig) -> Iterator[Document]:
    """Source documents: each is held out or trained on as a whole; documents_of() splits them.

    Files come in the order of their names; repetitions are included. The largest source document bounds the memory.

    Raises:
        ConfigError: an empty, binary, damaged or badly encoded file, or a record without text; with file and line.
        MissingDataError: the path does not exist, or a package or data set is not available.
    """
    if corpus.source == "hub":
        for dataset in hub.datasets_of(corpus):
            for place, row in hub.rows(dataset, revision):
                yield Document(place, (_text_of(row, corpus, place),))
        return
    files = files_of(corpus)
    by_file = _ends_with_file(corpus, sum(suffixes(file)[0] != ".jsonl" for _, file in files))
    for name, file in files:
        documents = _records(file, corpus) if suffixes(file)[0] == ".jsonl" else _plain(file, by_file)
        first = next(documents, None)
        if first is None:
            raise ConfigError(f"{file} is empty")
        for line, blocks in chain([first], documents):
            yield Document(f"{name}:{line}", blocks)


def documents_of(source: Document, corpus: CorpusConfig) -> list[Document]:
    """Splits a source document into documents, by corpus.documents.

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
    """The added text as a separate corpus, cleaned and split like the main corpus; None if no text is added."""
    return None if added.source == "none" else AddedText.model_construct(**dict(corpus) | dict(added))


def distinct(documents: Iterable[Document], counts: Counter[str], seen: set[int] | None = None) -> Iterator[Document]:
    """The documents whose text did not occur before, in any white space, in order.

    Args:
        counts: Receives "documents" (number read) and "duplicates" (number dropped).
        seen: Hashes of earlier texts; receives the hashes of these documents. None: no earlier texts.
    """
    seen = set() if seen is None else seen
    for document in documents:
        key = _hash(" ".join(document.text.split()))
        counts["documents"] += 1
        if key in seen:
            counts["duplicates"] += 1
            continue
        seen.add(key)
        yield document


def marks(document: Document) -> set[int]:
    """Hashes that a document shares with its copies in other white space, and with those that have a part of it.

    They are those of its text and of its parts between blank lines of ten words or more.
    """
    parts = [part for block in document.blocks for part in re.split(r"\n\s*\n", block)]
    words = [document.text.split(), *(part.split() for part in parts)]
    return {_hash(" ".join(of)) for number, of in enumerate(words) if not number or len(of) >= FEWEST_WORDS}


def split_of(text: str, dev_share: float) -> Split:
    """The split of a source document; it depends only on the document's text, so other documents never change it."""
    return "dev" if _hash(text) < dev_share * 2**64 else "train"


def empty_split(split: Split, num_documents: int, corpus: CorpusConfig) -> ConfigError:
    """The error for a split without documents."""
    return ConfigError(
        f"corpus={corpus.name} has {num_documents} different documents with text, but none in the {split} split at"
        f" corpus.dev_share={corpus.dev_share}, a share of whole source documents: give more of them or another share;"
        f" corpus.source_documents={corpus.source_documents} sets where one ends"
        + ("; paragraphs of one sentence do not count" if corpus.documents == "paragraph" else "")
    )


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def raw_bytes(corpus: CorpusConfig) -> int | None:
    """Bytes of text behind the corpus, estimated if it is compressed; None for a data set of the Hub.

    Raises:
        MissingDataError: the path does not exist, or the package is not installed.
    """
    if corpus.source == "hub":
        folders = [hub.local_folder(dataset) for dataset in hub.datasets_of(corpus)]
        files = [file for folder in folders if folder for _, file in walk(folder)]
        return None if None in folders else sum(file.stat().st_size for file in files)
    return int(sum(file.stat().st_size * COMPRESSION.get(suffixes(file)[1], 1) for _, file in files_of(corpus)))


def _ends_with_file(corpus: CorpusConfig, num_files: int) -> bool:
    """Whether a source document in plain text is a whole file; otherwise it ends at a blank line.

    With corpus.source_documents=auto: if dev_share of the files is about two files or more.
    """
    if corpus.documents == "file" or corpus.source_documents == "file":
        return True
    return corpus.source_documents == "auto" and num_files * corpus.dev_share >= 2


def plain_files(corpus: CorpusConfig) -> int:
    """Number of plain-text files of a corpus: only blank lines and ends of files can separate their documents."""
    if corpus.source == "hub":
        return 0
    files = [file for _, file in files_of(corpus) if suffixes(file)[0] != ".jsonl"]
    has_sections = bool(files) and next((line for _, line in lines_of(files[0])), "").startswith("<doc ")
    return 0 if has_sections else len(files)


def holds_out_parts(corpus: CorpusConfig, num_files: int) -> bool:
    """Whether this many plain-text files are held out in part by default, not by a setting."""
    return corpus.source_documents == "auto" and not _ends_with_file(corpus, num_files)


def _plain(file: Path, by_file: bool) -> Iterator[tuple[int, tuple[str, ...]]]:
    """First line and blocks of each source document: a `<doc>` section of WikiExtractor, a file, or one block."""
    start, blocks, lines, in_section, is_first = 1, [], [], False, True
    for number, line in lines_of(file):
        if is_first and line.strip():
            _refuse_record(line, f"{file}:{number}")
            is_first = False
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


def _refuse_record(line: str, place: str) -> None:
    if not line.lstrip().startswith("{"):
        return
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return
    raise ConfigError(f"{place}: a line of JSON in a file of plain text: name such files .jsonl (.jsonl.gz, ...)")


def _records(file: Path, corpus: CorpusConfig) -> Iterator[tuple[int, tuple[str]]]:
    for number, line in lines_of(file):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file}:{number}: not a line of JSON: {error}") from error
        yield number, (_text_of(record, corpus, f"{file}:{number}"),)


def _text_of(record: Any, corpus: CorpusConfig, place: str) -> str:
    if not isinstance(record, dict):
        raise ConfigError(f"{place}: a {type(record).__name__}, not a record")
    field = corpus.text_field
    text = record.get(field)
    if not isinstance(text, str):
        problem = f"has {text!r}, not text" if field in record else "is missing"
        raise ConfigError(
            f"{place}: {corpus.section}.text_field={field} {problem}; fields: {', '.join(map(str, record))}"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{place}: the text is badly encoded: {error}") from error
    return text
