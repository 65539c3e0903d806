"""From documents to segment pairs: the plan of one epoch."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal, Self

import numpy as np

from albert_lab.config.data import InterSentenceConfig
from albert_lab.data.pair_kinds import KINDS, Rows, Segments, check_kinds, kinds_across, random_document
from albert_lab.data.shards import Shards
from albert_lab.errors import ConfigError

SPECIAL_TOKENS = 3  # [CLS] A [SEP] B [SEP]

# Documents are processed in blocks of about this many sentences, so that memory does not grow with the corpus.
# Segments are exchanged only within a block, so another value gives other pairs.
BLOCK_SENTENCES = 1 << 18

# A document is cut into chunks alternately forwards and backwards, in stretches of about this many chunks.
STRETCH_CHUNKS = 32


class Stream(IntEnum):
    """Use of random numbers in batches and evaluation sets: a part of the generator's key, so that no two share any."""

    PAIRS = 0
    ORDER = 1
    MASKING = 2
    ACROSS = 3


def generator(stream: Stream, seed: int, major: int, minor: int = 0) -> np.random.Generator:
    """A random generator that depends only on its arguments."""
    return np.random.Generator(np.random.Philox(key=(seed, stream), counter=(0, 0, minor, major)))


@dataclass(frozen=True)
class Pairs:
    """Segment pairs as the model reads them, one row per pair; segment A comes first. stats are of the whole epoch."""

    a_start: np.ndarray  # [pairs] int64: offset into the tokens of the split
    a_length: np.ndarray  # [pairs] int32: tokens
    b_start: np.ndarray
    b_length: np.ndarray
    label: np.ndarray  # [pairs] int8: index into the labels of the objective, -1 where it has none
    kind: np.ndarray  # [pairs] int8: index into KINDS
    stats: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: np.ndarray | slice) -> Self:
        """These rows, in the order given."""
        return type(self)(*(column[rows] for column in self._columns()), stats=self.stats)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, one part after another, with the stats of the last."""
        columns = zip(*(part._columns() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns), stats=parts[-1].stats)

    def _columns(self) -> list[np.ndarray]:
        return [self.a_start, self.a_length, self.b_start, self.b_length, self.label, self.kind]


@dataclass(frozen=True)
class Chunks(Rows):
    """Runs of consecutive sentences of one document."""

    first: np.ndarray  # [chunks] int64: the first sentence
    end: np.ndarray  # [chunks] int64: the sentence after the last
    target: np.ndarray  # [chunks] int64: intended length in tokens


@dataclass(frozen=True)
class Stretches(Chunks):
    """Parts of a document that are cut into chunks separately; target is the target of their chunks."""

    backwards: np.ndarray  # [stretches] bool: cut from the last sentence to the first


def make_pairs(
    shards: Shards,
    spec: InterSentenceConfig,
    *,
    max_sequence_length: int,
    short_sequence_probability: float,
    seed: int,
    epoch: int,
    most_blocks: int | None = None,
) -> Pairs:
    """One epoch's segment pairs over a split, in training order; for a given text, a function of (seed, epoch) only.

    With most_blocks, pairs come from at most this many blocks of documents, at equal distances.

    Source: create_pretraining_data.py, create_instances_from_document.

    Raises:
        ConfigError: an unknown kind of pair, or a kind that cannot be made of this text.
    """
    check_kinds(spec)
    _check_sources(spec, shards.num_sources)
    limit = max_sequence_length - SPECIAL_TOKENS
    counts: Counter[str] = Counter()
    parts: list[Pairs] = []
    blocks = list(enumerate(_blocks(shards.document_offsets)))
    if most_blocks is not None and len(blocks) > most_blocks:
        blocks = [blocks[place * len(blocks) // most_blocks] for place in range(most_blocks)]
    for block, (first, end) in blocks:
        rng = generator(Stream.PAIRS, seed, epoch, block)
        stretches = _draw_stretches(shards, first, end, limit, short_sequence_probability, spec.cutting, rng)
        chunks = cut_chunks(stretches, shards.sentence_offsets)
        counts["chunks"] += len(chunks)
        counts["first_chunks"] += int(np.count_nonzero(chunks.first == shards.document_offsets[chunks.document]))
        for segments, label, kind in _make_kinds(shards, spec, chunks, counts, rng, limit):
            parts.append(_truncate(segments, label, kind, limit, counts, rng))
    pairs = Pairs.join(parts)
    _check_labels(spec, pairs, counts, limit)
    order = generator(Stream.ORDER, seed, epoch).permutation(len(pairs))
    return replace(pairs.take(order), stats=_stats(pairs, counts, shards, limit))


def _blocks(document_offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and end document of each block; blocks have about equal sizes, so that none is too small to exchange."""
    num_sentences = int(document_offsets[-1])
    num_blocks = -(-num_sentences // BLOCK_SENTENCES)
    bounds = np.searchsorted(document_offsets, np.arange(num_blocks + 1) * num_sentences // num_blocks)
    return itertools.pairwise(np.unique(bounds).tolist())


def _draw_stretches(
    shards: Shards,
    first_document: int,
    end_document: int,
    limit: int,
    short_probability: float,
    cutting: Literal["balanced", "released"],
    rng: np.random.Generator,
) -> Stretches:
    """Splits the documents of a block into stretches, with the target length of their chunks and direction of cutting.

    Source: create_instances_from_document; `cutting=released` follows it: one stretch per document, from the front.
    """
    bounds = shards.document_offsets[first_document : end_document + 1]
    num_documents = len(bounds) - 1
    is_short = rng.random(num_documents) < short_probability
    target = np.where(is_short, rng.integers(2, limit + 1, num_documents), limit)

    num_stretches = -(-np.diff(shards.sentence_offsets[bounds]) // (target * STRETCH_CHUNKS))
    if cutting == "released":
        num_stretches = np.ones_like(num_stretches)
    row = np.repeat(np.arange(num_documents), num_stretches)
    number = np.arange(len(row)) - np.repeat(np.cumsum(num_stretches) - num_stretches, num_stretches)
    num_sentences = np.diff(bounds)[row]
    # Differs from the release: half of the text is cut from the back. The sentence that reaches the target is longer
    # than average; if all text is cut from the front, it is always in the second segment, and lengths reveal the order.
    starts_backwards = rng.random(num_documents) < (0.5 if cutting == "balanced" else 0)
    return Stretches(
        document=row + first_document,
        first=bounds[row] + num_sentences * number // num_stretches[row],
        end=bounds[row] + num_sentences * (number + 1) // num_stretches[row],
        target=target[row],
        backwards=(number % 2 == 1) ^ starts_backwards[row],
    )


def cut_chunks(stretches: Stretches, sentence_offsets: np.ndarray) -> Chunks:
    """The chunks of adjacent stretches: consecutive sentences up to the target length or to the end of the stretch."""
    base = stretches.first[0]
    lengths = np.diff(sentence_offsets[base : stretches.end[-1] + 1])
    first, end = stretches.first - base, stretches.end - base
    stretch = np.repeat(np.arange(len(stretches)), end - first)  # stretch of each sentence, in the order of cutting
    sentence = np.arange(len(stretch))
    sentence = np.where(stretches.backwards[stretch], (first + end)[stretch] - 1 - sentence, sentence)
    offsets = np.concatenate([[0], np.cumsum(lengths[sentence])])
    reached = np.searchsorted(offsets, offsets[:-1] + stretches.target[stretch])
    next_cut = np.minimum(reached, end[stretch]).tolist()
    cuts = [0]
    while cuts[-1] < len(next_cut):
        cuts.append(next_cut[cuts[-1]])

    cut = np.array(cuts)
    of = stretches.take(stretch[cut[:-1]])
    low, high = cut[:-1] + base, cut[1:] + base
    return Chunks(
        document=of.document,
        first=np.where(of.backwards, of.first + of.end - high, low),
        end=np.where(of.backwards, of.first + of.end - low, high),
        target=of.target,
    )


def _make_kinds(
    shards: Shards,
    spec: InterSentenceConfig,
    chunks: Chunks,
    counts: Counter[str],
    rng: np.random.Generator,
    limit: int,
) -> Iterator[tuple[Segments, int, str]]:
    """Segment pairs with their label and their kind, for each kind of the objective."""
    alone = chunks.end - chunks.first == 1
    several, single = chunks.take(~alone), chunks.take(alone)
    offsets = shards.sentence_offsets
    middle = offsets[rng.integers(several.first + 1, several.end)]
    segments = _segments(shards, several, middle)

    mix = _mix(spec)
    assigned = rng.permutation(_quotas([share for _, _, share in mix], len(segments), rng))
    for part, (label, kind, _) in enumerate(mix):
        candidates = segments.take(assigned == part)
        pairs = KINDS[kind].make(candidates, rng, shards)
        counts["unmatched_pairs"] += len(candidates) - len(pairs)
        yield pairs, label, kind

    if spec.single_sentence_chunks == "other-document":
        yield (
            random_document(_segments(shards, single, offsets[single.end]), rng, shards),
            spec.negative,
            "other-document",
        )
    elif not spec.labels and shards.is_of_single_sentences:
        yield _alone(shards, single, limit), -1, "consecutive"
    else:
        counts["dropped_chunks"] += len(single)
        counts["dropped_tokens"] += int((offsets[single.end] - offsets[single.first]).sum())


def _mix(spec: InterSentenceConfig) -> list[tuple[int, str, float]]:
    """Label, kind and share of the pairs of several sentences; without labels, all are consecutive."""
    kinds = [(label, entry.kind, entry.share) for label, entry in enumerate(spec.labels)] or [(-1, "consecutive", 1.0)]
    if spec.random_share:
        label, kind, share = kinds[spec.negative]
        kinds[spec.negative] = label, kind, share - spec.random_share
        kinds.append((label, "random-document", spec.random_share))
    return kinds


def _quotas(shares: Sequence[float], num_pairs: int, rng: np.random.Generator) -> np.ndarray:
    """The part of each of num_pairs pairs, in exactly these shares, up to rounding, so that chance is known.

    Pairs for which the text has no second segment are left out afterwards.
    """
    # Differs from the release, which draws each label at random.
    upper = np.cumsum(shares)[:-1]
    return np.searchsorted(upper, (np.arange(num_pairs) + rng.random()) / max(num_pairs, 1), side="right")


def _segments(shards: Shards, chunks: Chunks, middle: np.ndarray) -> Segments:
    """Chunks as two segments, the second from the token `middle` [chunks] on."""
    start, end = shards.sentence_offsets[chunks.first], shards.sentence_offsets[chunks.end]
    source = shards.source_of(chunks.document)
    return Segments(chunks.document, source, chunks.target, start, middle - start, middle, end - middle)


def _alone(shards: Shards, chunks: Chunks, limit: int) -> Segments:
    """Chunks of one sentence as examples of their own: parts of at most `limit` tokens with empty second segments."""
    whole = _segments(shards, chunks, shards.sentence_offsets[chunks.end])
    number = -(-whole.a_length // limit)
    part = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    of = whole.take(np.repeat(np.arange(len(whole)), number))
    number = np.repeat(number, number)
    first, end = of.a_length * part // number, of.a_length * (part + 1) // number
    return replace(
        of, a_start=of.a_start + first, a_length=end - first, b_start=of.a_start + end, b_length=0 * of.b_length
    )


def truncated_lengths(a_length: np.ndarray, b_length: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths after cutting the longer segment (the second if equal), token by token, until both fit into limit."""
    return (
        np.minimum(a_length, np.maximum(limit - b_length, limit - limit // 2)),
        np.minimum(b_length, np.maximum(limit - a_length, limit // 2)),
    )


def _truncate(
    segments: Segments, label: int, kind: str, limit: int, counts: Counter[str], rng: np.random.Generator
) -> Pairs:
    """The truncated pairs; each token is cut from the front or the back of its segment with equal probability."""
    a_length, b_length = truncated_lengths(segments.a_length, segments.b_length, limit)
    a_cut, b_cut = segments.a_length - a_length, segments.b_length - b_length
    counts["truncated_tokens"] += int(a_cut.sum() + b_cut.sum())
    return Pairs(
        a_start=segments.a_start + rng.binomial(a_cut, 0.5),
        a_length=a_length.astype(np.int32),
        b_start=segments.b_start + rng.binomial(b_cut, 0.5),
        b_length=b_length.astype(np.int32),
        label=np.full(len(segments), label, dtype=np.int8),
        kind=np.full(len(segments), _number(kind), dtype=np.int8),
        stats={},
    )


def _number(kind: str) -> int:
    return list(KINDS).index(kind)


def _check_sources(spec: InterSentenceConfig, num_sources: int) -> None:
    kinds = {kind for _, kind, _ in _mix(spec)} | {spec.single_sentence_chunks}
    if kinds.intersection(kinds_across()) and num_sources < 2:
        raise ConfigError(
            f"inter_sentence={spec.name} pairs text of different source documents, and the corpus has {num_sources}:"
            " give two or more, or corpus.document_characters=N, which cuts a long text into several"
        )


def _check_labels(spec: InterSentenceConfig, pairs: Pairs, counts: Counter[str], limit: int) -> None:
    missing = [entry.kind for label, entry in enumerate(spec.labels) if not np.any(pairs.label == label)]
    if missing or not len(pairs):
        raise ConfigError(
            f"inter_sentence={spec.name}: the {counts['chunks']:,} chunks of {limit + SPECIAL_TOKENS} tokens give"
            f" {len(pairs):,} pairs, and none of kind {' or '.join(missing) or 'consecutive'}: give more text, a larger"
            " max_sequence_length (a stage of length_schedule has a shorter one), or for single sentences"
            " inter_sentence=none"
        )


def _stats(pairs: Pairs, counts: Counter[str], shards: Shards, limit: int) -> dict[str, Any]:
    """Statistics of an epoch; shares of text are shares of its tokens, all other shares are of pairs or chunks.

    median_document_sequences is the length of the median document, in full sequences.
    """
    document_tokens = np.diff(shards.sentence_offsets[shards.document_offsets])
    return {
        "pairs": len(pairs),
        "chunks": counts["chunks"],
        "dropped_chunks": counts["dropped_chunks"],
        "unmatched_pairs": counts["unmatched_pairs"],
        "dropped_text_share": counts["dropped_tokens"] / shards.num_tokens,
        "truncated_text_share": counts["truncated_tokens"] / shards.num_tokens,
        "document_start_share": counts["first_chunks"] / counts["chunks"],
        "median_document_sequences": float(np.median(document_tokens)) / limit,
        "cross_document_share": float(np.mean(np.isin(pairs.kind, [_number(kind) for kind in kinds_across()]))),
    }
