"""Source documents of a corpus in a stable order, their split, and the documents and sentences within them."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import sentencex

from albert_lab.config.data import AddedCorpusConfig, AddedText, CorpusConfig
from albert_lab.data.files import READERS, Records, files_of, lines_of, reader_of, stream, suffixes, text_of
from albert_lab.data.fingerprint import revision
from albert_lab.data.words import Overlap
from albert_lab.errors import ConfigError

Split = Literal["train", "dev"]

DUPLICATES, REPEATED = "duplicate documents", "paragraphs that repeat held-out text"
_INVISIBLE = "\u200b\u2060\ufeff \t"  # a line of these is blank
# Of the lines that is_hard_wrapped() looks at.
_SAMPLED_LINES, _FEWEST_LINES, _WIDEST_LINE, _SENTENCE_ENDS = 2000, 20, 120, ".!?…:;\"'”’)。！？；」』"
_segment: Callable[[str, str], list[str]] = sentencex.segment  # pyright: ignore[reportAttributeAccessIssue]  # no stubs


@dataclass(frozen=True)
class Document:
    """One raw document, neither cleaned nor split; corpus.sentences sets whether a line is a paragraph or a sentence.

    Attributes:
        blocks: Its text, split at blank lines if a blank line may end a document; a record is one block.
    """

    blocks: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.blocks)


def iterate(corpus: CorpusConfig, skipped: list[str] | None = None) -> Iterator[Document]:
    """Source documents: each is held out or trained on as a whole; documents_of() splits them.

    Files come in the order of their names; repetitions are included. The largest source document bounds the memory.

    Args:
        skipped: receives what is wrong with each record that is left out by corpus.on_error=skip.

    Raises:
        ConfigError: an empty, binary, damaged or badly encoded file, or a record without text; with file and line.
        MissingDataError: the path does not exist, or a package or data set is not available.
    """
    skipped = [] if skipped is None else skipped
    if corpus.source == "hub":
        for dataset in corpus.datasets:
            rows = stream(dataset.path, name=dataset.name, split=dataset.split, revision=revision(dataset))
            yield from _of_records(dataset.path, enumerate(rows), corpus, skipped)
        return
    files = [file for _, file in files_of(corpus)]
    num_plain = sum(suffixes(file)[0] not in READERS for file in files)
    by_file = "file" in (corpus.documents, corpus.source_documents)
    # With auto: if dev_share of the files is about two files or more.
    by_file = by_file or (corpus.source_documents == "auto" and num_plain * corpus.dev_share >= 2)
    for file in files:
        is_empty, reader = True, reader_of(file)
        found = _of_records(str(file), reader(file), corpus, skipped) if reader else _of_text(file, by_file, corpus)
        for document in found:
            is_empty = False
            yield document
        if is_empty and not skipped:
            raise ConfigError(f"{file} is empty")


def _of_records(place: str, records: Records, corpus: CorpusConfig, skipped: list[str]) -> Iterator[Document]:
    for number, record in records:
        try:
            yield Document((text_of(record, corpus.text_field, f"{corpus.section}.text_field"),))
        except ConfigError as error:
            said = f"{place}:{number}: {error}"
            if corpus.on_error == "stop":
                raise ConfigError(f"{said} ({corpus.section}.on_error=skip leaves such records out)") from error
            skipped.append(said)


def _of_text(file: Path, by_file: bool, corpus: CorpusConfig) -> Iterator[Document]:
    """A `<doc>` section of WikiExtractor, a file, or the text up to a blank line; or parts of it."""
    size, wrapped = corpus.document_characters, corpus.lines == "wrapped"
    in_section = False
    blocks: list[str] = []
    block: list[str] = []
    # The end of the file is like a tag, which ends any document.
    for line in chain((line for _, line in lines_of(file)), ["</doc>"]):
        tag = line.startswith(("<doc ", "</doc>"))
        in_section = line.startswith("<doc ") if tag else in_section
        blank = not line.strip() or not line.strip(_INVISIBLE)
        if tag or (blank and (wrapped or not in_section)):
            if block:
                blocks.append((" " if wrapped else "\n").join(block))
                block = []
            if blocks and (tag or not (by_file or in_section)):
                whole = Document(tuple(blocks))
                yield from [whole] if size is None else _parts(whole.text, size, corpus)
                blocks = []
        elif not blank:
            block.append(line)


def _parts(text: str, size: int, corpus: CorpusConfig) -> Iterator[Document]:
    """Parts of about so many characters, which end where a line or, in a longer line, a sentence ends."""
    part = ""
    for line in text.split("\n"):
        for number, piece in enumerate(raw_sentences(line, corpus) if len(line) > size else [line]):
            part += (" " if number and part else "\n" * bool(part)) + piece
            if len(part) >= size:
                yield Document((part,))
                part = ""
    if part.strip():
        yield Document((part,))


def is_hard_wrapped(corpus: CorpusConfig) -> bool:
    """Whether most lines of the first plain-text file have about the same length and do not end as sentences do."""
    plain = next((file for _, file in files_of(corpus) if not reader_of(file)), None)
    lines = [line.strip() for _, line in islice(lines_of(plain), _SAMPLED_LINES) if line.strip()] if plain else []
    if len(lines) < _FEWEST_LINES:
        return False
    most = sorted(map(len, lines))[int(0.95 * len(lines))]
    full = [line for line in lines if 0.75 * most <= len(line) <= most]
    open_ended = [line for line in full if line[-1] not in _SENTENCE_ENDS]
    return most <= _WIDEST_LINE and len(full) > 0.6 * len(lines) and len(open_ended) > 0.6 * len(full)


def added_to(corpus: CorpusConfig, added: AddedCorpusConfig) -> CorpusConfig | None:
    """The added text as a separate corpus, cleaned and split like the main corpus; None if no text is added."""
    return None if added.source == "none" else AddedText.model_construct(**dict(corpus) | dict(added))


# ---- splits, documents and sentences ----


def split_of(text: str, dev_share: float, seed: int = 0) -> Split:
    """The split of a source document; it depends only on the document's text, so other documents never change it."""
    return "dev" if _hash(text, seed) < dev_share * 2**64 else "train"


def _hash(text: str, seed: int = 0) -> int:
    salt = seed.to_bytes(hashlib.blake2b.SALT_SIZE, "little")  # that of zeros is none
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, salt=salt).digest(), "little")


def documents_of(source: Document, corpus: CorpusConfig) -> list[Document]:
    """Splits a source document into documents, by corpus.documents.

    A paragraph is a line; with corpus.sentences=line, it is the text between blank lines.
    """
    if corpus.documents == "file":
        return [source]
    texts = _paragraphs(source, corpus) if corpus.documents == "paragraph" else source.blocks
    return [Document((text,)) for text in texts]


def _paragraphs(document: Document, corpus: CorpusConfig) -> Sequence[str]:
    end = "\n" if corpus.sentences == "split" else r"\n\s*\n"
    return [text for block in document.blocks for text in re.split(end, block) if text.strip()]


def raw_sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Sentences of a document as they stand in it; some may be blank."""
    lines = text.split("\n")
    if corpus.sentences == "line":
        return iter(lines)
    return chain.from_iterable(_segment(corpus.language, line) for line in lines)


def sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Sentences of a document that are not blank, before cleaning: the splitter needs capital letters."""
    return filter(None, map(str.strip, raw_sentences(text, corpus)))


# ---- repetitions ----


def distinct(documents: Iterable[Document], counts: Counter[str], seen: set[int] | None = None) -> Iterator[Document]:
    """The documents whose text did not occur before, in any white space, in order.

    Args:
        counts: Receives "documents" (number read) and DUPLICATES (number dropped).
        seen: Hashes of earlier texts; receives the hashes of these documents. None: no earlier texts.
    """
    seen = set() if seen is None else seen
    for document in documents:
        key = _hash(" ".join(document.text.split()))
        counts["documents"] += 1
        if key in seen:
            counts[DUPLICATES] += 1
            continue
        seen.add(key)
        yield document


def without_repeated(
    documents: Iterable[Document], corpus: CorpusConfig, held_out: Overlap, counts: Counter[str]
) -> Iterator[Document]:
    """The documents without paragraphs that repeat held-out text, and without those of which nothing is left.

    Args:
        counts: Receives REPEATED (number of paragraphs dropped).
    """
    for document in documents:
        parts = _paragraphs(document, corpus)
        repeated = held_out.repeated(parts)
        counts[REPEATED] += sum(repeated)
        if not any(repeated):
            yield document
        elif own := tuple(part for part, is_repeated in zip(parts, repeated, strict=True) if not is_repeated):
            yield Document(own)


def empty_split(split: Split, num_documents: int, corpus: CorpusConfig, num_repeated: int = 0) -> ConfigError:
    """The error for a split without documents; num_repeated is the number of dropped paragraphs, see REPEATED."""
    why = f" ({num_repeated:,} {REPEATED} were dropped; corpus.repeats=keep keeps them)" if num_repeated else ""
    return ConfigError(
        f"corpus.dev_share={corpus.dev_share} leaves the {split} split of corpus={corpus.name} empty, which has"
        f" {num_documents} different documents{why}: give more text, another share, or corpus.document_characters=N,"
        " which cuts a long text into several"
    )
