"""Synthetic token shards: with the lengths of prose, and with token ids that encode positions."""

from collections.abc import Sequence

import numpy as np

from albert_lab.data.pairs import Pairs
from albert_lab.data.shards import Shards

FIRST_TEXT_ID = 5  # ids below stand for special tokens


def make_shards(
    documents: Sequence[Sequence[int]],
    vocab_size: int = 60_000,
    sources: Sequence[int] | None = None,
) -> Shards:
    """Shards of documents given by the lengths of their sentences; ids count up, so that neighbours
    are known.

    sources gives the number of documents of each source document; None: one each.
    """
    offsets = [
        np.append(0, np.cumsum(lengths)).view(np.memmap)
        for lengths in (
            np.concatenate(documents),
            [len(document) for document in documents],
            [1] * len(documents) if sources is None else sources,
        )
    ]
    assert offsets[-1][-1] == len(documents)
    tokens = FIRST_TEXT_ID + np.arange(offsets[0][-1]) % (vocab_size - FIRST_TEXT_ID)
    return Shards("train", tokens.astype(np.uint16).view(np.memmap), *offsets, meta={})


def sources_of(shards: Shards, pairs: Pairs) -> np.ndarray:
    """The source documents of the first and of the second segments [2, pairs]."""
    return shards.source_of(shards.document_at(np.stack([pairs.a_start, pairs.b_start])))


def make_prose(
    num_documents: int,
    *,
    sentences: float = 30,
    tokens: float = 27,
    vocab_size: int = 60_000,
    seed: int = 0,
) -> Shards:
    """Shards of documents with about these numbers of sentences (geometric) and tokens per sentence
    (log-normal).
    """
    rng = np.random.default_rng(seed)
    spread = 0.6
    mean = np.log(tokens) - spread**2 / 2
    documents = []
    for _ in range(num_documents):
        lengths = np.rint(rng.lognormal(mean, spread, rng.geometric(1 / sentences)))
        documents.append(np.maximum(1, lengths).astype(np.int64).tolist())
    return make_shards(documents, vocab_size)
