"""Source documents of a corpus in a stable order, their split, and the documents and sentences within them."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Literal

import sentencex

from albert_lab.config.data import AddedCorpusConfig, AddedText, CorpusConfig
from albert_lab.data.files import READERS, Records, files_of, lines_of, reader_of, suffixes, text_of
from albert_lab.data.words import repeated
from albert_lab.errors import ConfigError

Split = Literal["train", "dev"]
Document = Sequence[str]  # its blocks or paragraphs, between line ends

DUPLICATES, REPEATED = "duplicate documents", "paragraphs that repeat held-out text"
_INVISIBLE = "\u200b\u2060\ufeff \t"  # a line of these is blank
_SHARD = 4_000_000  # bytes: files that are as large on average have many documents each
_SENTENCE_ENDS = ".!?…:;\"'”’)。！？；」』"
_segment: Callable[[str, str], list[str]] = sentencex.segment  # pyright: ignore[reportAttributeAccessIssue]  # no stubs


def iterate(corpus: CorpusConfig, skipped: list[str] | None = None) -> Iterator[Document]:
    """Source documents: each is held out or trained on as a whole; documents_of() splits them.

    They are neither cleaned nor split, but at blank lines where these may end a document. Files come in the order of
    their names; repetitions are included. The largest source document bounds the memory.

    Args:
        skipped: receives what is wrong with each record that is left out by corpus.on_error=skip.

    Raises:
        ConfigError: a binary, damaged or badly encoded file, or a record without text; with file and line.
        MissingDataError: the path does not exist, or a package is not available.
    """
    files, skipped = [file for _, file in files_of(corpus)], [] if skipped is None else skipped
    plain = [file.stat().st_size for file in files if suffixes(file)[0] not in READERS]
    # With auto: if dev_share of the files is about two files or more, and they are no shards.
    is_many = len(plain) * corpus.dev_share >= 2 and sum(plain) < len(plain) * _SHARD
    by_file = "file" in (corpus.documents, corpus.source_documents) or (corpus.source_documents == "auto" and is_many)
    for file in files:
        reader = reader_of(file)
        yield from _of_records(file, reader(file), corpus, skipped) if reader else _of_text(file, by_file, corpus)


def _of_records(file: Path, records: Records, corpus: CorpusConfig, skipped: list[str]) -> Iterator[Document]:
    for number, record in records:
        try:
            yield [text_of(record, corpus)]
        except ConfigError as error:
            said = f"{file}:{number}: {error}"
            if corpus.on_error == "stop":
                raise ConfigError(f"{said} (corpus.on_error=skip leaves such records out)") from error
            skipped.append(said)


def _of_text(file: Path, by_file: bool, corpus: CorpusConfig) -> Iterator[Document]:
    """A file, or the text up to a blank line; or parts of it."""
    end, size = " " if corpus.lines == "wrapped" else "\n", corpus.document_characters
    groups = groupby((line for _, line in lines_of(file)), lambda line: not line.strip() or not line.strip(_INVISIBLE))
    blocks = (end.join(lines) for is_blank, lines in groups if not is_blank)
    for source in filter(None, [list(blocks)] if by_file else ([block] for block in blocks)):
        yield from [source] if size is None else _parts("\n".join(source), size, corpus)


def _parts(text: str, size: int, corpus: CorpusConfig) -> Iterator[Document]:
    """Parts of about so many characters, which end where a line or, in a longer line, a sentence ends."""
    part = ""
    for line in text.split("\n"):
        for number, piece in enumerate(raw_sentences(line, corpus) if len(line) > size else [line]):
            part += (" " if number and part else "\n" * bool(part)) + piece
            if len(part) >= size:
                yield [part]
                part = ""
    if part.strip():
        yield [part]


def is_hard_wrapped(corpus: CorpusConfig) -> bool:
    """Whether most lines of the first plain-text file have about the same length and do not end as sentences do."""
    plain = next((file for _, file in files_of(corpus) if not reader_of(file)), None)
    lines = [line.strip() for _, line in islice(lines_of(plain), 2000) if line.strip()] if plain else []
    most = sorted(map(len, lines))[int(0.95 * len(lines))] if lines else 0
    full = [line for line in lines if 0.75 * most <= len(line) and line[-1] not in _SENTENCE_ENDS]
    return len(lines) >= 20 and most <= 120 and len(full) > 0.4 * len(lines)


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
    """Splits a source document into documents, by corpus.documents, and these into paragraphs.

    A paragraph is a line; with corpus.sentences=line, it is the text between blank lines.
    """
    end = "\n" if corpus.sentences == "split" else r"\n\s*\n"
    blocks = [[text for text in re.split(end, block) if text.strip()] for block in source]
    if corpus.documents == "blank-line":
        return [*blocks]
    paragraphs = [*chain.from_iterable(blocks)]
    return [paragraphs] if corpus.documents == "file" else [[text] for text in paragraphs]


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


def distinct(documents: Iterable[Document], counts: Counter[str], seen: set[int]) -> Iterator[Document]:
    """The documents whose text did not occur before, in any white space, in order.

    Args:
        counts: Receives "documents" (number read) and DUPLICATES (number dropped).
        seen: Hashes of earlier texts; receives the hashes of these documents.
    """
    for document in documents:
        key = _hash(" ".join(" ".join(document).split()))
        counts.update({"documents": 1, DUPLICATES: int(key in seen)})
        if key not in seen:
            seen.add(key)
            yield document


def without_repeated(documents: Iterable[Document], held_out: set[int], counts: Counter[str]) -> Iterator[Document]:
    """The documents without paragraphs that repeat held-out text, and without those of which nothing is left.

    Args:
        held_out: Hashes of the n-grams of words of held-out text.
        counts: Receives REPEATED (number of paragraphs dropped).
    """
    for document in documents:
        is_repeated = repeated(document, held_out)
        counts[REPEATED] += sum(is_repeated)
        if not document or not all(is_repeated):
            yield [text for text, drop in zip(document, is_repeated, strict=True) if not drop]


def empty_split(split: str, num_documents: int, corpus: CorpusConfig) -> ConfigError:
    """The error for a split without documents."""
    if not num_documents:
        return ConfigError(f"the text of corpus={corpus.name} is empty: give another corpus.path than {corpus.path}")
    return ConfigError(
        f"corpus.dev_share={corpus.dev_share} leaves the {split} split of {num_documents} different documents empty:"
        " give more text, another share, corpus.repeats=keep, or corpus.document_characters=N to cut a long text"
    )
