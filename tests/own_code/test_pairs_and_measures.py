"""Toy tests of an own kind of segment pair and of an own held-out measure: copy them to test yours."""

import numpy as np
import pytest
from toy import toy_config
from toy_shards import make_prose

from albert_lab import registry
from albert_lab.config.compose import load
from albert_lab.config.data import InterSentenceConfig, PairLabel
from albert_lab.data.pairs import make_pairs
from albert_lab.errors import ConfigError
from albert_lab.measures import catalog
from albert_lab.measures.measure import PairMeasure

SKIPPED = """
from dataclasses import replace

import numpy as np

from albert_lab.extend import Segments, Shards, pair_kind


@pair_kind("shortened")
def shortened(segments: Segments, rng: np.random.Generator, shards: Shards) -> Segments:
    kept = segments.take(segments.b_length > 1)  # pairs that cannot be of this kind are left out
    return replace(kept, b_start=kept.b_start + 1, b_length=kept.b_length - 1)
"""
HALVES = """
from dataclasses import replace

from albert_lab.extend import Pairs, Shards, measure


@measure("sop_of_halves", "SOP of halves", like="sop_accuracy")
def halves(pairs: Pairs, shards: Shards, seed: int) -> Pairs:
    return replace(pairs, a_length=(pairs.a_length + 1) // 2, b_length=(pairs.b_length + 1) // 2)
"""


@pytest.fixture(autouse=True)
def nothing_included():
    with registry.separate():
        yield


@pytest.fixture
def own(tmp_path):
    def include(text):
        file = tmp_path / "own.py"
        file.write_text(text)
        return registry.include(file)

    return include


def shortened_pairs():
    labels = tuple(PairLabel(kind=kind, share=0.5) for kind in ("consecutive", "shortened"))
    spec = InterSentenceConfig(name="mix", labels=labels, single_sentence_chunks="drop", cutting="balanced")
    return make_pairs(make_prose(40), spec, max_sequence_length=64, short_sequence_probability=0.1, seed=0, epoch=0)


def test_an_own_kind_of_pair_is_made_in_its_share(own):
    own(SKIPPED)
    pairs = shortened_pairs()
    assert np.mean(pairs.label) == pytest.approx(0.5, abs=0.02)
    gap = pairs.b_start - (pairs.a_start + pairs.a_length)
    whole = pairs.a_length + pairs.b_length < 61 - 1  # not truncated
    assert set(gap[whole & (pairs.label == 0)]) == {0}
    assert set(gap[whole & (pairs.label == 1)]) == {1}


def test_a_kind_of_pair_that_is_not_included_is_unknown():
    with pytest.raises(ConfigError, match="kind=shortened is unknown"):
        shortened_pairs()


def test_an_own_measure_is_taken_in_every_run_and_its_code_is_part_of_each(own, tmp_path):
    before = load(["scale=smoke"])
    result = own(HALVES)
    measures = {measure.name: measure for measure in catalog.of_kind(PairMeasure)}
    shards, config = make_prose(40), toy_config(tmp_path)
    halves, whole = (measures[name].pairs(shards, config, 100) for name in ("sop_of_halves", "sop_accuracy"))
    np.testing.assert_array_equal(halves.a_length, (whole.a_length + 1) // 2)
    assert catalog.labels()["sop_of_halves"] == "SOP of halves"
    with_measure = load(["scale=smoke"])
    assert with_measure.own_code == [result]
    assert with_measure.identity() != before.identity()


def test_a_measure_cannot_take_the_name_of_another(own):
    with pytest.raises(ConfigError, match="measure sop_accuracy is part of albert_lab"):
        own(HALVES.replace('"sop_of_halves"', '"sop_accuracy"'))
