"""Synthetic token shards: with the lengths of prose, and with token ids that encode positions."""

from collections.abc import Sequence

import numpy as np

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
    source_lengths = [1] * len(documents) if sources is None else sources
    sentence_offsets = np.concatenate([[0], np.cumsum(np.concatenate(documents))]).astype(np.int64)
    document_offsets = np.concatenate(
        [[0], np.cumsum([len(document) for document in documents])]
    ).astype(np.int64)
    source_offsets = np.concatenate([[0], np.cumsum(source_lengths)]).astype(np.int64)
    assert source_offsets[-1] == len(documents)
    tokens = FIRST_TEXT_ID + np.arange(sentence_offsets[-1]) % (vocab_size - FIRST_TEXT_ID)
    parts = (tokens.astype(np.uint16), sentence_offsets, document_offsets, source_offsets)
    maps = [part.view(np.memmap) for part in parts]
    return Shards("train", *maps, meta={})


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
    documents = [
        np.maximum(
            1,
            np.rint(
                rng.lognormal(np.log(tokens) - spread**2 / 2, spread, rng.geometric(1 / sentences))
            ),
        )
        for _ in range(num_documents)
    ]
    return make_shards([document.astype(np.int64).tolist() for document in documents], vocab_size)
