import numpy as np
import pytest
from toy_shards import make_prose

from albert_lab.config import compose as config
from albert_lab.config.data import InterSentenceConfig
from albert_lab.data.pair_kinds import KINDS
from albert_lab.data.pairs import Pairs, make_pairs
from albert_lab.data.shards import Shards


@pytest.fixture(scope="module")
def prose() -> Shards:
    return make_prose(2400)


def with_random(share: float, option: str = "sop") -> InterSentenceConfig:
    content = config.load([f"inter_sentence={option}"]).inter_sentence.model_dump()
    return InterSentenceConfig.model_validate(content | {"random_share": share})


def plan(shards: Shards, spec: InterSentenceConfig) -> Pairs:
    return make_pairs(shards, spec, max_sequence_length=64, short_sequence_probability=0.1, seed=0, epoch=0)


def of_kind(pairs: Pairs, kind: str) -> Pairs:
    return pairs.take(pairs.kind == list(KINDS).index(kind))


def sources(shards: Shards, starts: np.ndarray) -> np.ndarray:
    return shards.source_of(shards.document_at(starts))


def test_random_share_replaces_so_many_of_the_negatives_and_has_their_label(prose: Shards):
    pairs = plan(prose, with_random(0.2))
    random = of_kind(pairs, "random-document")
    assert len(random) / len(pairs) == pytest.approx(0.2, abs=0.01)
    assert len(of_kind(pairs, "swapped")) / len(pairs) == pytest.approx(0.3, abs=0.01)
    assert set(random.label) == {1}
    assert np.bincount(pairs.label) / len(pairs) == pytest.approx(np.array([0.5, 0.5]), abs=0.01)
    assert np.all(sources(prose, random.a_start) != sources(prose, random.b_start))


def test_a_random_share_of_zero_changes_nothing(prose: Shards):
    without = config.load(["inter_sentence=sop"]).inter_sentence
    assert np.array_equal(plan(prose, with_random(0)).b_start, plan(prose, without).b_start)
    assert "random_share" not in with_random(0).model_dump()


@pytest.mark.parametrize("share", [-0.1, 0.5, 1])
def test_a_random_share_must_leave_pairs_of_the_negative_label(share: float):
    with pytest.raises(ValueError, match="random_share .* less than the 0.5"):
        with_random(share)


def test_an_objective_without_labels_has_no_random_share():
    with pytest.raises(ValueError, match="only 0 without labels"):
        with_random(0.1, "none")
