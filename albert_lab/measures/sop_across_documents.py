"""Order across documents: which segment comes first, if the second is from another document?

What each segment shows by itself is still there; what relates the two is gone.
"""

from dataclasses import replace

import numpy as np

from albert_lab.data.pairs import NoPairsError, Pairs, Stream, generator, partners
from albert_lab.data.shards import Shards


def across_documents(pairs: Pairs, shards: Shards, seed: int) -> Pairs:
    """SOP pairs, each with the second segment of a pair of another source document, of nearest
    length.

    Pairs next to each other in the order of that length exchange their second segments, so that
    these are the same ones as before. If one source document has more than half of the pairs, those
    without a partner take a second segment that is used twice. A longer one is cut at its end, so
    no segment is longer than the one it replaces.

    Raises:
        NoPairsError: all pairs are of one source document.
    """
    is_swapped = pairs.label == 1  # the second segment stands first
    start = np.where(is_swapped, pairs.a_start, pairs.b_start)
    length = np.where(is_swapped, pairs.a_length, pairs.b_length)
    source = shards.source_of(shards.document_at(start))
    if len(np.unique(source)) < 2:
        raise NoPairsError(
            "sop_across_documents exchanges second segments between source documents, but all "
            "held-out pairs are of one: hold out more text (corpus.dev_share)"
        )
    donor = _donors(source, length, generator(Stream.ACROSS, seed, 0).random(len(pairs)))
    start = start[donor]
    length = np.minimum(length, length[donor])
    return replace(
        pairs,
        a_start=np.where(is_swapped, start, pairs.a_start),
        a_length=np.where(is_swapped, length, pairs.a_length),
        b_start=np.where(is_swapped, pairs.b_start, start),
        b_length=np.where(is_swapped, pairs.b_length, length),
    )


def _donors(source: np.ndarray, length: np.ndarray, tie: np.ndarray) -> np.ndarray:
    """The pair from which each pair takes its second segment [pairs]; ties of length are broken by
    `tie`.
    """
    order = np.lexsort((tie, length))
    donor = np.empty(len(source), dtype=np.int64)
    pairs, waiting = partners(source, order)
    donor[pairs] = pairs[:, ::-1]
    if waiting:
        # The shortest segment that is as long, or else the longest there is.
        others = order[source[order] != source[waiting[0]]]
        nearest = np.searchsorted(length[others], length[waiting]).clip(max=len(others) - 1)
        donor[waiting] = others[nearest]
    return donor
