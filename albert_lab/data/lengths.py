"""Lengths of the documents of a corpus, counted while they are encoded, and warnings about its settings."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import ROUND_UP, Context
from statistics import median_low

import numpy as np

from albert_lab.config.data import CorpusConfig
from albert_lab.data import corpus as texts
from albert_lab.data.files import left_out

# A document with at most this many sentences is likely to be a paragraph.
PARAGRAPH_SENTENCES = 3
_NAMED = 5  # files and folders that are not read


@dataclass
class Lengths:
    """Number of documents by length in tokens and by length in sentences."""

    tokens: Counter[int] = field(default_factory=Counter)
    sentences: Counter[int] = field(default_factory=Counter)

    def add(self, sentence_lengths: np.ndarray, document_lengths: np.ndarray) -> None:
        """Counts documents: tokens of each sentence [sentences], sentences of each document [documents], none empty."""
        if len(document_lengths):
            starts = np.cumsum(document_lengths) - document_lengths
            self.tokens.update(np.add.reduceat(sentence_lengths, starts).tolist())
            self.sentences.update(document_lengths.tolist())

    @property
    def medians(self) -> dict[str, int]:
        """Tokens and sentences of the median document (the shorter of two); 0 without documents."""
        return {"median_document_tokens": _median(self.tokens), "median_document_sentences": _median(self.sentences)}


def _median(counts: Counter[int]) -> int:
    return median_low(counts.elements()) if counts else 0


def warnings(corpus: CorpusConfig, lengths: Lengths) -> list[str]:
    """Warnings about what is probably not meant: files that are not read, paragraphs as documents, parts held out."""
    warnings = []
    others, links = left_out(corpus)
    if others:
        warnings.append(
            f"warning: {len(others)} file{'s are' if len(others) > 1 else ' is'} not read, since only .txt, .jsonl and"
            f" names without an ending are: {', '.join(others[:_NAMED])}{', …' * (len(others) > _NAMED)}. A glob reads"
            f" any name: 'corpus.path={corpus.path}/*'"
        )
    if links:
        warnings.append(
            f"warning: {len(links)} linked folder{'s are' if len(links) > 1 else ' is'} not read, since links to"
            f" folders are not followed: {', '.join(links[:_NAMED])}{', …' * (len(links) > _NAMED)}"
        )
    sentences = lengths.medians["median_document_sentences"]
    files = texts.plain_files(corpus)
    if corpus.documents == "blank-line" and files and sentences <= PARAGRAPH_SENTENCES:
        warnings.append(
            f"warning: half of the documents have at most {sentences} sentence{'s' * (sentences > 1)}, as paragraphs"
            f" have: a blank line ends a document. corpus.documents=file makes a document of each file,"
            " corpus.documents=paragraph of each paragraph of two sentences or more"
        )
    if files > 1 and texts.holds_out_parts(corpus, files):
        more = f", or corpus.dev_share={_share_of_two(files):g} or more," if files > 2 else ""
        warnings.append(
            f"warning: {files} files are held out in part and trained on in part, since corpus.dev_share="
            f"{corpus.dev_share:g} of them is less than two: corpus.source_documents=file{more} holds out whole files"
        )
    return warnings


def _share_of_two(files: int) -> float:
    """The share that is two of the files, rounded up to two digits: a smaller one would be less than two."""
    return float(Context(prec=2, rounding=ROUND_UP).divide(2, files))
