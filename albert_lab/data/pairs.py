"""From documents to segment pairs: the kinds of pair, and the plan of one epoch."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from albert_lab.config.data import InterSentenceConfig
from albert_lab.config.schema import RunConfig
from albert_lab.data.chunks import (
    Chunks,
    Rows,
    Stream,
    blocks_of,
    cut_chunks,
    draw_stretches,
    generator,
)
from albert_lab.data.shards import Shards
from albert_lab.errors import ConfigError

SPECIAL_TOKENS = 3  # [CLS] A [SEP] B [SEP]


class NoPairsError(ConfigError):
    """A text of which the pairs of an objective or a measure cannot be made."""


@dataclass(frozen=True)
class _Spans(Rows):
    """The places of both segments of each pair; segment A comes first."""

    a_start: np.ndarray  # [pairs] int64: offset into the tokens of the split
    a_length: np.ndarray  # [pairs] int32 or int64: tokens
    b_start: np.ndarray
    b_length: np.ndarray


@dataclass(frozen=True)
class Pairs(_Spans):
    """Segment pairs as the model reads them. stats are of the whole epoch."""

    label: np.ndarray  # [pairs] int8: index into the labels of the objective, -1 where it has none
    stats: dict[str, Any]

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, one part after another, with the stats of the last."""
        columns = [part.columns() for part in parts]
        joined = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
        return replace(parts[-1], **joined)


@dataclass(frozen=True)
class Segments(_Spans):
    """Segment pairs before truncation."""

    source: np.ndarray  # [pairs] int64: source document of the first segment
    target: np.ndarray  # [pairs] int64: intended length of both segments in tokens


def swapped(segments: Segments, rng: Generator, shards: Shards) -> Segments:
    """The pairs with the second segment first (section 3.1).

    On Wikipedia articles, lengths alone separate them from consecutive pairs in 50.6 % (length 64)
    and 51.1 % (128) of cases (standard error 0.1). Part of that is in the text: with shuffled
    sentences it is 50.4 and 50.2 %.
    """
    return replace(
        segments,
        a_start=segments.b_start,
        a_length=segments.b_length,
        b_start=segments.a_start,
        b_length=segments.a_length,
    )


def other_document(segments: Segments, rng: Generator, shards: Shards) -> Segments:
    """The pairs, each with a second segment of the same length from another source document.

    Pairs next to each other in the order of that length exchange their second segments.
    """
    # Differs from the release: there the second segment starts anywhere in a random document, so
    # that its length and truncated end reveal the label, and its text is read twice.
    pairs, _ = partners(segments.source, np.lexsort((rng.random(len(segments)), segments.b_length)))
    receivers = pairs.ravel()
    donors = pairs[:, ::-1].ravel()
    return replace(
        segments.take(receivers),
        b_start=segments.b_start[donors],
        b_length=segments.b_length[donors],
    )


def partners(source: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Pairs next to each other in an order [pairs], of two sources [exchanges, 2]; the rest, all of
    one source.
    """
    source_of = source.tolist()  # indexing a list is faster than an array, one by one
    exchanges: list[tuple[int, int]] = []
    waiting: list[int] = []  # all of one source, since two of different sources would be partners
    for pair in order.tolist():
        if waiting and source_of[waiting[-1]] != source_of[pair]:
            exchanges.append((waiting.pop(), pair))
        else:
            waiting.append(pair)
    return np.array(exchanges, dtype=np.int64).reshape(-1, 2), waiting


def random_document(segments: Segments, rng: Generator, shards: Shards) -> Segments:
    """The pairs, each with a second segment from a random place of a random document of another
    source.

    It runs from a random sentence to the target length or to the end of that sentence's document,
    as in the release (create_instances_from_document). So its length and its place in its document
    can reveal this kind.
    """
    offsets = shards.sentence_offsets
    documents = shards.document_offsets
    # A number among the documents of other sources: those of the pair's own source, which lie
    # together, are skipped.
    num_own = np.diff(shards.source_offsets)[segments.source]
    has_others = num_own < shards.num_documents
    segments = segments.take(has_others)
    num_own = num_own[has_others]
    first_own = shards.source_offsets[segments.source]
    other = rng.integers(shards.num_documents - num_own)
    other += np.where(other >= first_own, num_own, 0)
    first = rng.integers(documents[other], documents[other + 1])
    wanted = np.maximum(segments.target - segments.a_length, 1)
    end = np.minimum(np.searchsorted(offsets, offsets[first] + wanted), documents[other + 1])
    return replace(segments, b_start=offsets[first], b_length=offsets[end] - offsets[first])


@dataclass(frozen=True)
class PairKind:
    """A kind of pair: from consecutive pairs to those of the kind, without pairs that have no
    partner.

    is_across: whether the second segment is from another source document.
    """

    make: Callable[[Segments, Generator, Shards], Segments]
    is_across: bool = False


KINDS: dict[str, PairKind] = {
    "consecutive": PairKind(lambda segments, rng, shards: segments),
    "swapped": PairKind(swapped),
    "other-document": PairKind(other_document, is_across=True),
    "random-document": PairKind(random_document, is_across=True),
}


def check_kinds(spec: InterSentenceConfig) -> None:
    """Raises ConfigError if an objective names an unknown kind of pair."""
    kinds = {kind for _, kind, _ in _mix(spec)} | {spec.single_sentence_chunks} - {"drop"}
    for kind in sorted(kinds - KINDS.keys()):
        raise ConfigError(
            f"inter_sentence.labels: kind={kind} is unknown (allowed: {', '.join(KINDS)})"
        )


def make_pairs(
    shards: Shards,
    spec: InterSentenceConfig,
    config: RunConfig,
    seed: int,
    epoch: int,
    most_blocks: int | None = None,
) -> Pairs:
    """One epoch's segment pairs over a split, in training order; for a given text, a function of
    (seed, epoch) only.

    The configuration sets their length and how many are short. With most_blocks, pairs come from at
    most this many blocks of documents, at equal distances.

    Source: create_pretraining_data.py, create_instances_from_document.

    Raises:
        ConfigError: an unknown kind of pair; NoPairsError: one that cannot be made of this text.
    """
    check_kinds(spec)
    limit = config.max_sequence_length - SPECIAL_TOKENS
    short = config.short_sequence_probability
    counts = Counter[str]()
    parts: list[Pairs] = []
    for number, first, end in blocks_of(shards, most_blocks):
        rng = generator(Stream.PAIRS, seed, epoch, number)
        stretches = draw_stretches(
            shards, first, end, limit, short, spec.cutting == "released", rng
        )
        chunks = cut_chunks(*stretches, shards.sentence_offsets)
        counts["chunks"] += len(chunks)
        for segments, label, kind in _make_kinds(shards, spec, chunks, counts, rng, limit):
            counts["pairs_across"] += len(segments) * KINDS[kind].is_across
            parts.append(_truncate(segments, label, limit, counts, rng))
    pairs = Pairs.join(parts)
    missing = [
        entry.kind for label, entry in enumerate(spec.labels) if not np.any(pairs.label == label)
    ]
    if missing or not len(pairs):
        raise NoPairsError(
            f"inter_sentence={spec.name}: the {shards.split} text gives {len(pairs):,} pairs, and "
            f"none of kind {' or '.join(missing) or 'consecutive'}: {counts['dropped_chunks']:,} "
            f"of {counts['chunks']:,} chunks of {config.max_sequence_length} tokens have one "
            f"sentence, and {counts['unmatched_pairs']:,} pairs no other source document. Give "
            "more text, blank lines between documents, a larger max_sequence_length (a stage of "
            "length_schedule has a shorter one), or for single sentences inter_sentence=none"
        )
    order = generator(Stream.ORDER, seed, epoch).permutation(len(pairs))
    return replace(pairs.take(order), stats=_stats(pairs, counts, shards))


def _make_kinds(
    shards: Shards,
    spec: InterSentenceConfig,
    chunks: Chunks,
    counts: Counter[str],
    rng: Generator,
    limit: int,
) -> Iterator[tuple[Segments, int, str]]:
    """Segment pairs with their label and their kind, for each kind of the objective."""
    is_single = chunks.end - chunks.first == 1
    several = chunks.take(~is_single)
    single = chunks.take(is_single)
    offsets = shards.sentence_offsets
    middle = offsets[rng.integers(several.first + 1, several.end)]
    segments = _segments(shards, several, middle)

    # Exactly these shares, up to rounding, so that chance is known; pairs without a second segment
    # are left out later. Differs from the release, which draws each label at random.
    mix = _mix(spec)
    upper = np.cumsum([share for _, _, share in mix])[:-1]
    drawn = np.arange(len(segments)) + rng.random()  # at equal distances, from one random start
    assigned = rng.permutation(np.searchsorted(upper, drawn / max(len(segments), 1), side="right"))
    for part, (label, kind, _) in enumerate(mix):
        candidates = segments.take(assigned == part)
        pairs = KINDS[kind].make(candidates, rng, shards)
        counts["unmatched_pairs"] += len(candidates) - len(pairs)
        yield pairs, label, kind

    if spec.single_sentence_chunks == "other-document":
        pairs = random_document(_segments(shards, single, offsets[single.end]), rng, shards)
        yield pairs, spec.negative, "other-document"
    elif not spec.labels and (shards.is_of_single_sentences or not len(several)):
        yield _alone(shards, single, limit), -1, "consecutive"
    else:
        counts["dropped_chunks"] += len(single)
        counts["dropped_tokens"] += int((offsets[single.end] - offsets[single.first]).sum())


def _mix(spec: InterSentenceConfig) -> list[tuple[int, str, float]]:
    """Label, kind and share of the pairs of several sentences; without labels, all are
    consecutive.
    """
    kinds = [(label, entry.kind, entry.share) for label, entry in enumerate(spec.labels)] or [
        (-1, "consecutive", 1.0)
    ]
    if spec.random_share:
        label, kind, share = kinds[spec.negative]
        kinds[spec.negative] = label, kind, share - spec.random_share
        kinds.append((label, "random-document", spec.random_share))
    return kinds


def _segments(shards: Shards, chunks: Chunks, middle: np.ndarray) -> Segments:
    """Chunks as two segments, the second from the token `middle` [chunks] on."""
    start = shards.sentence_offsets[chunks.first]
    end = shards.sentence_offsets[chunks.end]
    return Segments(
        source=shards.source_of(chunks.document),
        target=chunks.target,
        a_start=start,
        a_length=middle - start,
        b_start=middle,
        b_length=end - middle,
    )


def _alone(shards: Shards, chunks: Chunks, limit: int) -> Segments:
    """Chunks of one sentence as examples of their own: parts of at most `limit` tokens with empty
    second segments.
    """
    whole = _segments(shards, chunks, shards.sentence_offsets[chunks.end])
    num_parts = -(-whole.a_length // limit)  # rounded up
    row = np.repeat(np.arange(len(whole)), num_parts)
    part = np.arange(len(row)) - np.searchsorted(row, row)  # from 0 in each chunk
    parts = whole.take(row)
    first = parts.a_length * part // num_parts[row]
    end = parts.a_length * (part + 1) // num_parts[row]
    return replace(
        parts, a_start=parts.a_start + first, a_length=end - first, b_start=parts.a_start + end
    )


def truncated_lengths(
    a_length: np.ndarray, b_length: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths after cutting the longer segment (the second if equal), token by token, until both
    fit into limit.
    """
    first = np.minimum(a_length, np.maximum(limit - b_length, limit - limit // 2))
    return first, np.minimum(b_length, np.maximum(limit - a_length, limit // 2))


def _truncate(
    segments: Segments, label: int, limit: int, counts: Counter[str], rng: Generator
) -> Pairs:
    """The truncated pairs; each token is cut from the front or the back of its segment with equal
    probability.
    """
    a_length, b_length = truncated_lengths(segments.a_length, segments.b_length, limit)
    a_cut = segments.a_length - a_length
    b_cut = segments.b_length - b_length
    counts["truncated_tokens"] += int(a_cut.sum() + b_cut.sum())
    return Pairs(
        a_start=segments.a_start + rng.binomial(a_cut, 0.5),
        a_length=a_length.astype(np.int32),
        b_start=segments.b_start + rng.binomial(b_cut, 0.5),
        b_length=b_length.astype(np.int32),
        label=np.full(len(segments), label, dtype=np.int8),
        stats={},
    )


def _stats(pairs: Pairs, counts: Counter[str], shards: Shards) -> dict[str, Any]:
    """Statistics of an epoch; shares of text are shares of its tokens, the other is of pairs."""
    return {
        "pairs": len(pairs),
        **{name: counts[name] for name in ("chunks", "dropped_chunks", "unmatched_pairs")},
        "dropped_text_share": counts["dropped_tokens"] / len(shards.tokens),
        "truncated_text_share": counts["truncated_tokens"] / len(shards.tokens),
        "cross_document_share": counts["pairs_across"] / len(pairs),
    }
