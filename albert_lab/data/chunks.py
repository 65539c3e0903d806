"""From documents to chunks: runs of consecutive sentences of one document, of which segment pairs
are made.
"""

import itertools
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Self

import numpy as np
from numpy.random import Generator

from albert_lab.data.shards import Shards

# Documents are processed in blocks of about this many sentences, so that memory does not grow with
# the corpus. Segments are exchanged only within a block, so another value gives other pairs.
BLOCK_SENTENCES = 1 << 18

# A document is cut into chunks alternately forwards and backwards, in stretches of about this many
# chunks.
STRETCH_CHUNKS = 32


class Stream(IntEnum):
    """Use of random numbers in batches and evaluation sets: a part of the generator's key, so that
    no two share any.
    """

    PAIRS = 0
    ORDER = 1
    MASKING = 2
    ACROSS = 3


def generator(stream: Stream, seed: int, major: int, minor: int = 0) -> Generator:
    """A random generator that depends only on its arguments."""
    return np.random.Generator(np.random.Philox(key=(seed, stream), counter=(0, 0, minor, major)))


@dataclass(frozen=True)
class Rows:
    """Columns of equal length, and what else there is; the class name says what a row is."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def take(self, rows: np.ndarray | slice) -> Self:
        """These rows, in the order given."""
        return replace(self, **{name: column[rows] for name, column in self.columns().items()})

    def columns(self) -> dict[str, np.ndarray]:
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}


@dataclass(frozen=True)
class Chunks(Rows):
    """Runs of consecutive sentences of one document. A stretch is one that is cut into others, of
    its target.
    """

    document: np.ndarray  # [chunks] int64: the document that the chunk was cut from
    first: np.ndarray  # [chunks] int64: the first sentence
    end: np.ndarray  # [chunks] int64: the sentence after the last
    target: np.ndarray  # [chunks] int64: intended length in tokens


def blocks_of(shards: Shards, most: int | None = None) -> list[tuple[int, int, int]]:
    """The blocks of a split: number, first document and the one after the last; at most `most`
    (None: all), spread over the text.

    They are of about equal sizes, so that none is too small for its documents to exchange segments,
    of which negative pairs of NSP are made.
    """
    num_sentences = int(shards.document_offsets[-1])
    num_blocks = -(-num_sentences // BLOCK_SENTENCES)
    bounds = np.searchsorted(
        shards.document_offsets, np.arange(num_blocks + 1) * num_sentences // num_blocks
    )
    ends = np.unique(bounds).tolist()
    blocks = [*zip(itertools.count(), ends, ends[1:], strict=False)]
    most = min(most or len(blocks), len(blocks))
    return [blocks[place * len(blocks) // most] for place in range(most)]


def draw_stretches(
    shards: Shards,
    first: int,
    end: int,
    limit: int,
    short_probability: float,
    is_released: bool,
    rng: Generator,
) -> tuple[Chunks, np.ndarray]:
    """Stretches of the documents first to end - 1, and whether each is cut from its last sentence
    to the first, bool.

    Source: create_instances_from_document; is_released follows it: one stretch per document, from
    the front.
    """
    bounds = shards.document_offsets[first : end + 1]
    num_documents = len(bounds) - 1
    is_short = rng.random(num_documents) < short_probability
    target = np.where(is_short, rng.integers(2, limit + 1, num_documents), limit)

    num_stretches = -(-np.diff(shards.sentence_offsets[bounds]) // (target * STRETCH_CHUNKS))
    if is_released:
        num_stretches = np.ones_like(num_stretches)
    row = np.repeat(np.arange(num_documents), num_stretches)
    number = np.arange(len(row)) - np.repeat(
        np.cumsum(num_stretches) - num_stretches, num_stretches
    )
    num_sentences = np.diff(bounds)[row]
    # Differs from the release: half of the text is cut from the back. The sentence that reaches the
    # target is longer than average; if all text is cut from the front, it is always in the second
    # segment, and lengths reveal the order.
    starts_backwards = rng.random(num_documents) < (0 if is_released else 0.5)
    stretches = Chunks(
        document=row + first,
        first=bounds[row] + num_sentences * number // num_stretches[row],
        end=bounds[row] + num_sentences * (number + 1) // num_stretches[row],
        target=target[row],
    )
    return stretches, (number % 2 == 1) ^ starts_backwards[row]


def cut_chunks(stretches: Chunks, backwards: np.ndarray, sentence_offsets: np.ndarray) -> Chunks:
    """The chunks of adjacent stretches: consecutive sentences up to the target length or to the end
    of the stretch.
    """
    base = stretches.first[0]
    # As a list, in which one number is found faster than in an array.
    offsets = sentence_offsets[base : stretches.end[-1] + 1].tolist()
    firsts = (stretches.first - base).tolist()
    ends = (stretches.end - base).tolist()
    targets = stretches.target.tolist()
    rows: list[int] = []
    spans: list[tuple[int, int]] = []
    for row, is_backwards in enumerate(backwards.tolist()):
        low = firsts[row]
        high = ends[row]
        while low < high:
            rows.append(row)
            if is_backwards:
                cut = max(low, bisect_right(offsets, offsets[high] - targets[row]) - 1)
                spans.append((cut, high))
                high = cut
            else:
                cut = min(high, bisect_left(offsets, offsets[low] + targets[row]))
                spans.append((low, cut))
                low = cut
    bounds = base + np.array(spans)
    return replace(stretches.take(np.array(rows)), first=bounds[:, 0], end=bounds[:, 1])
