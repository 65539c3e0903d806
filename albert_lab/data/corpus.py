"""Source documents of a corpus in a stable order, their split, and the documents and sentences
within them.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Literal

import sentencex

from albert_lab.config.data import AddedText, CorpusConfig
from albert_lab.config.schema import RunConfig
from albert_lab.data.files import READERS, Records, files_of, lines_of, reader_of, suffixes, text_of
from albert_lab.data.words import repeated
from albert_lab.errors import ConfigError
from albert_lab.messages import counted

Split = Literal["train", "dev"]
Document = Sequence[str]  # its blocks or paragraphs, between line ends

DUPLICATES = "duplicate documents"
REPEATED = "paragraphs that repeat held-out text"
_INVISIBLE = "\u200b\u2060\ufeff \t"  # a line of these is blank
_SHARD = 4_000_000  # bytes: files that are as large on average have many documents each
_LOOKED_AT = 2000  # lines from which the form of a text is told
# How a line begins in a list of sentences, or in a table.
_NUMBER_OR_COLUMN = re.compile(r"\d+[.:)]?\s|[^\t]*\t")
_SENTENCE_ENDS = ".!?…:;\"'”’)。！？；」』"
_segment: Callable[[str, str], list[str]] = sentencex.segment  # pyright: ignore[reportAttributeAccessIssue]  # no stubs


def iterate(corpus: CorpusConfig, skipped: list[str]) -> Iterator[Document]:
    """Source documents, each a list of its blocks, which are the text between blank lines: a file,
    a block, a line or a record, by corpus.source_documents. Each is held out or trained on as a
    whole; documents_of() splits it.

    They are not cleaned. Files
    come in the order of their names; repetitions are included. The largest source document bounds
    the memory.

    Args:
        skipped: receives what is wrong with each record that is left out by corpus.on_error=skip.

    Raises:
        ConfigError: a binary, damaged or badly encoded file, or a record without text; with file
            and line.
        MissingDataError: the path does not exist, or a package is not available.
    """
    files = [file for _, file in files_of(corpus)]
    plain = [file.stat().st_size for file in files if suffixes(file)[0] not in READERS]
    # With auto: if dev_share of the files is about two files or more, and they are no shards.
    is_many = len(plain) * corpus.dev_share >= 2 and sum(plain) < len(plain) * _SHARD
    by_file = "file" in (corpus.documents, corpus.source_documents)
    by_file = by_file or (corpus.source_documents == "auto" and is_many)
    by_line = not by_file and has_a_document_a_line(corpus)
    for file in files:
        reader = reader_of(file)
        if reader:
            yield from _of_records(file, reader(file), corpus, skipped)
        elif by_line:
            yield from ([line] for _, line in lines_of(file) if not _is_blank(line))
        else:
            yield from _of_text(file, by_file, corpus)


def _of_records(
    file: Path, records: Records, corpus: CorpusConfig, skipped: list[str]
) -> Iterator[Document]:
    for number, record in records:
        try:
            yield [text_of(record, corpus)]
        except ConfigError as error:
            message = f"{file}:{number}: {error}"
            if corpus.on_error == "stop":
                raise ConfigError(
                    f"{message} (corpus.on_error=skip leaves such records out)"
                ) from error
            skipped.append(message)


def _is_blank(line: str) -> bool:
    return not line.strip() or not line.strip(_INVISIBLE)


def has_a_document_a_line(corpus: CorpusConfig) -> bool:
    """Whether each line is a source document: one plain file with a sentence a line and no blank
    line between them.

    As one document, nothing of it could be held out. Added text can be one document, since all of
    it is trained on.
    """
    is_asked = (
        corpus.sentences == "line"
        and corpus.section == "corpus"
        and corpus.source_documents == "auto"
        and corpus.documents == "blank-line"
    )
    if not is_asked:
        return False
    (_, file), *others = files_of(corpus)
    if others or reader_of(file):
        return False
    sizes = [sum(1 for _ in lines) for lines in _blocks(file)]
    return len(sizes) == 1 and sizes[0] > 1


def _blocks(file: Path) -> Iterator[Iterator[str]]:
    """The lines of each part of a file between blank lines."""
    groups = groupby((line for _, line in lines_of(file)), _is_blank)
    return (lines for is_blank, lines in groups if not is_blank)


def _of_text(file: Path, by_file: bool, corpus: CorpusConfig) -> Iterator[Document]:
    """The file as one document of all its blocks, or each block as a document; a block is the text
    between blank lines. An empty file has no document.
    """
    line_end = " " if corpus.lines == "wrapped" else "\n"
    blocks = map(line_end.join, _blocks(file))
    sources: Iterable[list[str]] = [list(blocks)] if by_file else ([block] for block in blocks)
    yield from filter(None, sources)


def doubts(corpus: CorpusConfig) -> list[str]:
    """What its first plain-text file looks like, where that is not what the settings say; with what
    would be right.
    """
    plain = [file for _, file in files_of(corpus) if not reader_of(file)]
    if not plain or corpus.source == "package":
        return []
    file = plain[0]
    lines = [line for _, line in islice(lines_of(file), _LOOKED_AT) if not _is_blank(line)]
    messages = []
    if has_a_document_a_line(corpus):
        borders = "a blank line after each document makes documents of several sentences"
        messages.append(f"{file} has no blank line, so each line is a document; {borders}")
    if corpus.lines == "whole" and _are_hard_wrapped(lines):
        messages.append(
            "most lines are of one length and end within a sentence: corpus.lines=wrapped joins "
            "them"
        )
    if sum(bool(_NUMBER_OR_COLUMN.match(line)) for line in lines) > 0.9 * len(lines):
        messages.append(
            f"all of a line is text, but lines of {file} begin with numbers or columns: "
            rf"sed -E 's/^([0-9]+[.:)]? +|.*\t)//' {file} > NEW drops them"
        )
    return messages


def _are_hard_wrapped(lines: Sequence[str]) -> bool:
    """Whether lines look cut at one width, of at most 120 characters: 40 % of them have about that
    width and do not end as sentences do. False of fewer than 20 lines.
    """
    if len(lines) < 20:
        return False
    width = sorted(map(len, lines))[int(0.95 * len(lines))]
    long = [line.strip() for line in lines if len(line) >= 0.75 * width]
    broken = [line for line in long if line[-1] not in _SENTENCE_ENDS]
    return width <= 120 and len(broken) > 0.4 * len(lines)


def corpora_of(config: RunConfig) -> list[CorpusConfig]:
    """The corpus of a run and, if text is added, this as another corpus, cleaned and split like the
    first.
    """
    corpora = [config.corpus]
    if config.added_corpus.source != "none":
        settings = dict(config.corpus) | dict(config.added_corpus)
        corpora.append(AddedText.model_construct(**settings))
    return corpora


# ---- splits, documents and sentences ----


def split_of(text: str, dev_share: float, seed: int = 0) -> Split:
    """The split of a source document; it depends only on the document's text, so other documents
    never change it.
    """
    return "dev" if _hash(text, seed) < dev_share * 2**64 else "train"


def _hash(text: str, seed: int = 0) -> int:
    salt = seed.to_bytes(hashlib.blake2b.SALT_SIZE, "little")  # that of zeros is none
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8, salt=salt).digest(), "little"
    )


def documents_of(source: Document, corpus: CorpusConfig) -> list[Document]:
    """Splits a source document into documents, by corpus.documents, and these into paragraphs.

    A paragraph is a line; with corpus.sentences=line, it is the text between blank lines.
    """
    end = "\n" if corpus.sentences == "split" else r"\n\s*\n"
    blocks = [[text for text in re.split(end, block) if text.strip()] for block in source]
    if corpus.documents == "blank-line":
        return [*blocks]
    paragraphs = list(chain.from_iterable(blocks))
    return [paragraphs] if corpus.documents == "file" else [[text] for text in paragraphs]


def raw_sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Sentences of a document as they stand in it; some may be blank."""
    lines = text.split("\n")
    if corpus.sentences == "line":
        return iter(lines)
    return chain.from_iterable(_segment(corpus.language, line) for line in lines)


def sentences(text: str, corpus: CorpusConfig) -> Iterator[str]:
    """Sentences of a document that are not blank, before cleaning: the splitter needs capital
    letters.
    """
    return filter(None, map(str.strip, raw_sentences(text, corpus)))


# ---- repetitions ----


def distinct(
    documents: Iterable[Document], counts: Counter[str], seen: set[int]
) -> Iterator[Document]:
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


def without_repeated(
    documents: Iterable[Document], held_out: set[int], counts: Counter[str]
) -> Iterator[Document]:
    """The documents without paragraphs that repeat held-out text, and without those of which
    nothing is left.

    Args:
        held_out: Hashes of the n-grams of words of held-out text.
        counts: Receives REPEATED (number of paragraphs dropped).
    """
    for document in documents:
        is_repeated = repeated(document, held_out)
        counts[REPEATED] += sum(is_repeated)
        if not document or not all(is_repeated):
            yield [text for text, drop in zip(document, is_repeated, strict=True) if not drop]


def empty_split(
    split: str,
    num_documents: int,
    corpus: CorpusConfig,
    skipped: Sequence[str],
    counts: Counter[str],
) -> ConfigError:
    """The error for a split without documents.

    Args:
        num_documents: of both splits.
        skipped: what is wrong with each record that was left out.
        counts: of what was dropped.
    """
    message = (
        f"corpus.dev_share={corpus.dev_share} leaves the {split} split of "
        f"{counted(num_documents, 'different document')} of corpus.path={corpus.path} empty "
        f"({counts[REPEATED]:,} paragraphs repeat held-out text): give more text, another share, "
        "or a blank line after each document"
    )
    return ConfigError("; ".join([message, *skipped[:1]]))
