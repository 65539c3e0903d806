"""The kinds of segment pair that an objective can mix: each makes its pairs from consecutive ones."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from albert_lab.config.data import InterSentenceConfig
from albert_lab.data.shards import Shards
from albert_lab.errors import ConfigError


@dataclass(frozen=True)
class Rows:
    """Columns of equal length; the class name says what a row is."""

    document: np.ndarray  # [rows] int64: the document that the row was cut from

    def __len__(self) -> int:
        return len(self.document)

    def take(self, rows: np.ndarray) -> Self:
        """These rows, in the order given."""
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True)
class Segments(Rows):
    """Segment pairs before truncation."""

    source: np.ndarray  # [pairs] int64: source document of the first segment
    target: np.ndarray  # [pairs] int64: intended length of both segments in tokens
    a_start: np.ndarray  # [pairs] int64: offset into the tokens of the split
    a_length: np.ndarray  # [pairs] int64: tokens
    b_start: np.ndarray
    b_length: np.ndarray


def consecutive(segments: Segments, rng: np.random.Generator, shards: Shards) -> Segments:
    """The pairs as they are in the text."""
    return segments


def swapped(segments: Segments, rng: np.random.Generator, shards: Shards) -> Segments:
    """The pairs with the second segment first (section 3.1).

    On Wikipedia articles, lengths alone separate them from consecutive pairs in 50.6 % (length 64) and 51.1 % (128) of
    cases (standard error 0.1). Part of that is in the text: with shuffled sentences it is 50.4 and 50.2 %.
    """
    first, second = (segments.a_start, segments.a_length), (segments.b_start, segments.b_length)
    return replace(segments, a_start=second[0], a_length=second[1], b_start=first[0], b_length=first[1])


def other_document(segments: Segments, rng: np.random.Generator, shards: Shards) -> Segments:
    """The pairs, each with a second segment of the same length from another source document.

    Pairs next to each other in the order of that length exchange their second segments.
    """
    # Differs from the release: there the second segment starts anywhere in a random document, so that its length and
    # truncated end reveal the label, and its text is read twice.
    source = segments.source.tolist()
    waiting: list[int] = []  # pairs without a partner so far, all of one source document
    partners: list[tuple[int, int]] = []
    for pair in np.lexsort((rng.random(len(segments)), segments.b_length)).tolist():
        if waiting and source[waiting[-1]] != source[pair]:
            partners.append((waiting.pop(), pair))
        else:
            waiting.append(pair)
    return _exchange(segments, np.array(partners, dtype=np.int64).reshape(-1, 2))


def same_document(segments: Segments, rng: np.random.Generator, shards: Shards) -> Segments:
    """The pairs, each with the second segment of the pair of its document that is nearest in length.

    In a document of few pairs, the nearest length may differ much; then lengths reveal this kind.
    """
    order = np.lexsort((rng.random(len(segments)), segments.b_length, segments.document))
    document = segments.document[order]
    rank = np.arange(len(order)) - np.searchsorted(document, document)
    even = np.flatnonzero((rank[:-1] % 2 == 0) & (document[:-1] == document[1:]))
    return _exchange(segments, np.stack([order[even], order[even + 1]], axis=1))


def random_document(segments: Segments, rng: np.random.Generator, shards: Shards) -> Segments:
    """The pairs, each with a second segment from a random place of a random document of another source.

    It runs from a random sentence to the target length or to the end of that sentence's document, as in the release
    (create_instances_from_document). So its length and its place in its document can reveal this kind.
    """
    offsets, documents = shards.sentence_offsets, shards.document_offsets
    own, after = shards.source_offsets[segments.source], shards.source_offsets[segments.source + 1]
    other = rng.integers(shards.num_documents - (after - own))
    other += np.where(other >= own, after - own, 0)
    first = rng.integers(documents[other], documents[other + 1])
    wanted = np.maximum(segments.target - segments.a_length, 1)
    end = np.minimum(np.searchsorted(offsets, offsets[first] + wanted), documents[other + 1])
    return replace(segments, b_start=offsets[first], b_length=offsets[end] - offsets[first])


def _exchange(segments: Segments, partners: np.ndarray) -> Segments:
    """The pairs in partners (row numbers [exchanges, 2]), each with the second segment of its partner."""
    receivers, donors = partners.ravel(), partners[:, ::-1].ravel()
    return replace(segments.take(receivers), b_start=segments.b_start[donors], b_length=segments.b_length[donors])


# From consecutive pairs to pairs of a kind, without those that have no partner.
MakePairs = Callable[[Segments, np.random.Generator, Shards], Segments]


@dataclass(frozen=True)
class PairKind:
    """A kind of pair; is_across: whether the second segment is from another source document."""

    make: MakePairs
    is_across: bool = False


KINDS: dict[str, PairKind] = {
    "consecutive": PairKind(consecutive),
    "swapped": PairKind(swapped),
    "other-document": PairKind(other_document, is_across=True),
    "same-document": PairKind(same_document),
    "random-document": PairKind(random_document, is_across=True),
}


def kinds_across() -> list[str]:
    """The kinds whose second segment is from another source document."""
    return [name for name, kind in KINDS.items() if kind.is_across]


def check_kinds(spec: InterSentenceConfig) -> None:
    """Raises ConfigError if an objective names an unknown kind of pair."""
    for entry in spec.labels:
        if entry.kind not in KINDS:
            raise ConfigError(f"inter_sentence.labels: kind={entry.kind} is unknown (allowed: {', '.join(KINDS)})")
