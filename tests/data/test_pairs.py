import itertools
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score
from toy_shards import make_prose, make_shards, sources_of

from albert_lab import paths
from albert_lab.config import compose as config
from albert_lab.config.data import InterSentenceConfig, PairLabel
from albert_lab.config.schema import RunConfig
from albert_lab.data import chunks as module
from albert_lab.data.chunks import Chunks, cut_chunks
from albert_lab.data.pairs import Pairs, make_pairs, truncated_lengths
from albert_lab.data.shards import Shards
from albert_lab.errors import ConfigError

OPTIONS = sorted(file.stem for file in (paths.CONF / "inter_sentence").glob("*.yaml"))


@cache
def load_config(option: str = "sop") -> RunConfig:
    return config.load([f"inter_sentence={option}"])


def load_spec(option: str) -> InterSentenceConfig:
    return load_config(option).inter_sentence


def mix(
    *kinds: str, single_sentence_chunks: Literal["drop", "other-document"] = "drop"
) -> InterSentenceConfig:
    labels = tuple(PairLabel(kind=kind, share=1 / len(kinds)) for kind in kinds)
    return InterSentenceConfig(
        name="mix", labels=labels, single_sentence_chunks=single_sentence_chunks, cutting="balanced"
    )


def plan(
    shards: Shards,
    spec: InterSentenceConfig,
    length: int = 64,
    short: float = 0.1,
    seed: int = 0,
    epoch: int = 0,
):
    lengths = load_config().model_copy(
        update={"max_sequence_length": length, "short_sequence_probability": short}
    )
    return make_pairs(shards, spec, lengths, seed=seed, epoch=epoch)


def spans(pairs: Pairs) -> list[tuple[int, int]]:
    starts = np.concatenate([pairs.a_start, pairs.b_start])
    lengths = np.concatenate([pairs.a_length, pairs.b_length])
    return sorted(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))


@pytest.fixture(scope="module")
def prose() -> Shards:
    return make_prose(2400)


@pytest.fixture(scope="module")
def even() -> Shards:
    """Sentences of 5 tokens, so that a chunk of 60 tokens has 12: nothing is truncated at length
    63.
    """
    return make_shards([[5] * (3 + number % 40) for number in range(200)])


# ---- chunks ----


def literal_chunks(lengths: list[int], target: int) -> list[tuple[int, int]]:
    result, first, tokens = [], 0, 0
    for sentence, length in enumerate(lengths):
        tokens += length
        if tokens >= target or sentence == len(lengths) - 1:
            result.append((first, sentence + 1))
            first, tokens = sentence + 1, 0
    return result


def balance(pairs: Pairs) -> list[float]:
    """The share of each label."""
    return (np.bincount(pairs.label[pairs.label >= 0]) / len(pairs)).tolist()


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(2, 40), st.booleans()
        ),
        min_size=1,
        max_size=6,
    )
)
def test_chunks_are_those_of_a_loop_over_sentences(stretches):
    sentences, targets, backwards = zip(*stretches, strict=True)
    ends = np.cumsum([len(lengths) for lengths in sentences])
    firsts = np.append(0, ends[:-1])
    expected = []
    for number, (lengths, target, is_backwards) in enumerate(stretches):
        first, end = firsts[number], ends[number]
        for low, high in literal_chunks(lengths[:: -1 if is_backwards else 1], target):
            span = (end - high, end - low) if is_backwards else (first + low, first + high)
            expected.append((number, *span, target))
    chunks = cut_chunks(
        Chunks(np.arange(len(ends)), firsts, ends, np.array(targets)),
        np.array(backwards),
        np.append(0, np.cumsum(np.concatenate(sentences))),
    )
    assert list(zip(*vars(chunks).values(), strict=True)) == expected


@given(st.integers(1, 60), st.integers(1, 60), st.integers(5, 70))
def test_truncated_lengths_are_those_of_cutting_the_longer_segment_token_by_token(
    a_length, b_length, limit
):
    result = truncated_lengths(np.array([a_length]), np.array([b_length]), limit)
    while a_length + b_length > limit:
        if a_length > b_length:
            a_length -= 1
        else:
            b_length -= 1
    assert result == (a_length, b_length)


def test_segments_are_cut_at_the_front_as_often_as_at_the_back():
    shards = make_shards([[50, 50]] * 3000)
    pairs = plan(shards, load_spec("none"), short=0)
    front = pairs.a_start % 100
    back = 50 - front - pairs.a_length
    assert set((front + back).tolist()) == {19}  # 31 + 30 of 61 are left
    assert abs(front.mean() - 9.5) < 4 * np.sqrt(19 / 4 / len(pairs))
    assert 4 < front.var() < 5.5  # drawn for each token separately


# ---- kinds ----


def test_consecutive_pairs_are_adjacent_in_the_text_and_swapped_pairs_in_reverse_order(even):
    pairs = plan(even, load_spec("sop"), length=63)
    kept, reversed_ = (pairs.take(pairs.label == label) for label in (0, 1))
    assert min(len(kept), len(reversed_)) > 100
    np.testing.assert_array_equal(kept.a_start + kept.a_length, kept.b_start)
    np.testing.assert_array_equal(reversed_.b_start + reversed_.b_length, reversed_.a_start)


@pytest.mark.parametrize("option", ["none", "sop"])
def test_an_sop_pair_never_crosses_a_document(prose, option):
    pairs = plan(prose, load_spec(option))
    places = [
        place for start, length in segments_of(pairs) for place in (start, start + length - 1)
    ]
    documents = prose.document_at(np.stack(places))
    assert np.all(documents == documents[0])
    assert pairs.stats["cross_document_share"] == 0


def segments_of(pairs: Pairs) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    yield pairs.a_start, pairs.a_length
    yield pairs.b_start, pairs.b_length


SOURCES = st.lists(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=8), min_size=1, max_size=5),
    min_size=2,
    max_size=12,
)


@settings(max_examples=30, deadline=None)
@given(SOURCES, st.integers(0, 3))
def test_pairs_of_two_documents_are_of_two_source_documents(sources, seed):
    documents = [document for source in sources for document in source]
    shards = make_shards(documents, sources=[len(source) for source in sources])
    spec = mix("consecutive", "other-document", single_sentence_chunks="other-document")
    try:
        pairs = plan(shards, spec, length=32, seed=seed)
    except ConfigError:  # the text is too small for the kind
        reject()
    crossing = pairs.take(pairs.label == 1)
    first, second = sources_of(shards, crossing)
    assert len(crossing)
    assert np.all(first != second)


def test_every_label_has_its_share(prose):
    for option in ("nsp", "sop", "three-way"):
        spec = load_spec(option)
        shares = [label.share for label in spec.labels]
        assert balance(plan(prose, spec)) == pytest.approx(shares, abs=2e-4)


@pytest.mark.parametrize("option", ["none", "sop", "nsp", "three-way"])
@pytest.mark.parametrize("block_sentences", [module.BLOCK_SENTENCES, 1000])
def test_an_epoch_visits_each_token_once_except_the_counted_ones(
    even, option, block_sentences, monkeypatch
):
    monkeypatch.setattr(module, "BLOCK_SENTENCES", block_sentences)
    pairs = plan(even, load_spec(option), length=63)
    result = spans(pairs)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(result))
    visited = sum(end - start for start, end in result) / len(even.tokens)
    most = 1 - pairs.stats["dropped_text_share"] - pairs.stats["truncated_text_share"]
    unmatched = 60 * pairs.stats["unmatched_pairs"] / len(even.tokens)
    assert most - unmatched - 1e-9 <= visited <= most + 1e-9
    assert visited > 0.95


def test_without_a_pair_loss_the_pairs_are_those_of_sop_unswapped(even):
    unlabelled, ordered = (plan(even, load_spec(option), length=63) for option in ("none", "sop"))
    assert spans(unlabelled) == spans(ordered)
    np.testing.assert_array_equal(unlabelled.a_start + unlabelled.a_length, unlabelled.b_start)
    assert set(unlabelled.label.tolist()) == {-1}


# ---- features that must not reveal the label ----


def score(features: list[np.ndarray], labels: np.ndarray) -> tuple[float, float]:
    """Held-out balanced accuracy of a classifier minus chance, and its standard error at chance."""
    classifier = HistGradientBoostingClassifier(
        max_iter=40, class_weight="balanced", random_state=0
    )
    result = cross_val_score(
        classifier, np.stack(features, axis=1), labels, cv=3, scoring="balanced_accuracy"
    ).mean()
    chance = 1 / len(np.unique(labels))
    return result - chance, float(np.sqrt(chance * (1 - chance) / len(labels)))


def features_of(shards: Shards, pairs: Pairs) -> list[np.ndarray]:
    """Lengths of both segments, and whether they begin and end at sentence boundaries."""
    edges = [edge for start, length in segments_of(pairs) for edge in (start, start + length)]
    return [
        pairs.a_length,
        pairs.b_length,
        *(np.isin(edge, shards.sentence_offsets) for edge in edges),
    ]


@pytest.mark.parametrize("option", OPTIONS)
def test_lengths_and_sentence_ends_do_not_reveal_the_label(prose, option):
    spec = load_spec(option)
    pairs = plan(prose, spec)
    assert len(pairs) >= 20_000
    if not spec.labels:
        assert set(pairs.label.tolist()) == {-1}
        return
    above_chance, error = score(features_of(prose, pairs), pairs.label)
    if spec.single_sentence_chunks == "drop":
        assert above_chance < 3 * error
    else:  # random text is labelled as swapped, and has other lengths
        assert above_chance > 5 * error, (above_chance, error)


# ---- the released treatment of single sentences ----


def random_share(shards: Shards, length: int) -> float:
    """Mean over epochs: whole documents have short chunks or not, so that one epoch is a small
    sample.
    """
    across = []
    for epoch in range(4):
        pairs = plan(shards, load_spec("sop-release"), length=length, epoch=epoch)
        share = pairs.stats["cross_document_share"]
        assert balance(pairs)[1] == pytest.approx(0.5 + share / 2, abs=1e-3)
        across.append(share)
    return float(np.mean(across))


def test_the_share_of_random_pairs_under_the_released_sop_is_as_simulated_from_its_code(prose):
    rng = np.random.default_rng(0)
    short_documents = make_shards(
        [(rng.poisson(27, rng.integers(1, 7)) + 1).tolist() for _ in range(3000)]
    )
    assert 0.04 < random_share(make_prose(1500, sentences=100), length=512) < 0.09
    assert 0.09 < random_share(prose, length=128) < 0.14
    assert 0.16 < random_share(short_documents, length=512) < 0.20


def test_random_text_reaches_the_target_but_not_beyond_the_end_of_its_document():
    shards = make_shards([[4, 4, 4, 4]] * 50 + [[40]] * 50)
    spec = mix("consecutive", "other-document", single_sentence_chunks="other-document")
    pairs = plan(shards, spec, short=0)
    alone = pairs.take(shards.document_at(pairs.a_start) >= 50)
    assert alone.label.tolist() == [1] * 50
    random = alone.take(shards.document_at(alone.b_start) < 50)
    ends = shards.document_at(random.b_start + random.b_length)
    np.testing.assert_array_equal(ends, shards.document_at(random.b_start) + 1)
    assert {4, 8, 12, 16} == {*random.b_length}


# ---- order and repeatability ----


def same(one: Pairs, other: Pairs) -> bool:
    return all(np.array_equal(vars(one)[name], vars(other)[name]) for name in vars(one))


@pytest.mark.parametrize("option", OPTIONS)
def test_a_plan_depends_only_on_seed_and_epoch(even, option):
    spec = load_spec(option)
    first = plan(even, spec, seed=3, epoch=2)
    assert same(first, plan(even, spec, seed=3, epoch=2))
    assert not same(first, plan(even, spec, seed=3, epoch=3))
    assert not same(first, plan(even, spec, seed=4, epoch=2))


# ---- errors ----


@pytest.mark.parametrize(
    ("documents", "sources", "spec", "said"),
    [
        ([[5] * 100] * 9, None, mix("consecutive", "backwards"), "backwards"),
        ([[5] * 100], None, load_spec("nsp"), "other-document"),
        ([[5] * 10] * 50, [50], load_spec("nsp"), "other-document"),
        ([[5] * 100, [5]], None, load_spec("nsp"), "other-document"),
        ([[100]] * 20, None, load_spec("sop"), "20 of 20 chunks"),
    ],
)
def test_a_corpus_that_cannot_give_the_pairs_is_refused(documents, sources, spec, said):
    with pytest.raises(ConfigError, match=rf"inter_sentence.*{said}"):
        plan(make_shards(documents, sources=sources), spec)


# ---- random documents in place of negatives ----


def with_random(share: float, option: str = "sop") -> InterSentenceConfig:
    return InterSentenceConfig.model_validate(
        load_spec(option).model_dump() | {"random_share": share}
    )


def test_random_share_replaces_so_many_of_the_negatives_and_has_their_label(prose):
    pairs = plan(prose, with_random(0.2))
    first, second = sources_of(prose, pairs)
    assert balance(pairs) == pytest.approx([0.5, 0.5], abs=0.01)
    assert np.mean(first != second) == pairs.stats["cross_document_share"]
    assert pairs.stats["cross_document_share"] == pytest.approx(0.2, abs=0.01)
    assert set(pairs.label[first != second]) == {1}
    assert "random_share" not in with_random(0).model_dump()


@pytest.mark.parametrize(("share", "option"), [(-0.1, "sop"), (0.5, "sop"), (0.1, "none")])
def test_a_random_share_must_leave_pairs_of_the_negative_label(share, option):
    with pytest.raises(ValueError, match="random_share"):
        with_random(share, option)


def test_without_a_sentence_loss_single_sentences_are_examples_whole_or_in_parts():
    shards = make_shards([[5]] * 30 + [[150]] * 10 + [[5, 5]] * 3)
    pairs = plan(shards, load_spec("none"), short=0)
    lengths = Counter(zip(pairs.a_length, pairs.b_length, strict=True))
    assert lengths == {(5, 0): 30, (50, 0): 30, (5, 5): 3}
    assert pairs.stats["dropped_text_share"] == pairs.stats["truncated_text_share"] == 0
    assert np.all(pairs.label == -1)
    long_sentences = plan(make_shards([[100, 100]] * 5), load_spec("none"), short=0)
    assert {*zip(long_sentences.a_length, long_sentences.b_length, strict=True)} == {(50, 0)}
