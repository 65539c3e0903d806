import itertools
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import pytest
from toy_shards import make_prose

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.data import batches as module
from albert_lab.data import chunks
from albert_lab.data.batches import (
    Batch,
    Batches,
    StagedBatches,
    collate,
    fixed_pairs,
    micro_batches,
)
from albert_lab.data.pairs import make_pairs
from albert_lab.data.shards import Shards
from albert_lab.data.tokenizer import Tokenizer

VOCAB = 20_000


@dataclass(frozen=True)
class ToyVocabulary:
    pad_id: int = 0
    cls_id: int = 2
    sep_id: int = 3
    mask_id: int = 4

    @cached_property
    def word_starts(self) -> np.ndarray:
        return np.arange(VOCAB) % 10 < 7


VOCABULARY = cast(Tokenizer, ToyVocabulary())


def configure(*overrides: str) -> RunConfig:
    return load(
        ["scale=smoke", "batch_size=16", "max_sequence_length=32", "inter_sentence=sop", *overrides]
    )


@pytest.fixture(scope="module")
def shards() -> Shards:
    return make_prose(30, sentences=20, tokens=8, vocab_size=VOCAB)


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return configure()


def make_batches(shards: Shards, config: RunConfig) -> Batches:
    return Batches(shards, VOCABULARY, config)


def make_set(shards: Shards, config: RunConfig, num_pairs: int, seed: int = 5) -> Batch:
    pairs = fixed_pairs(shards, config.inter_sentence, config, num_pairs, seed)
    rng = np.random.default_rng(seed)
    return collate(shards, pairs, VOCABULARY, config.masking, config.max_sequence_length, rng)


def same(one: Batch, other: Batch) -> bool:
    return all(np.array_equal(vars(one)[name], vars(other)[name]) for name in vars(one))


def unmask(batch: Batch) -> np.ndarray:
    ids = batch.input_ids.copy()
    ids.ravel()[batch.masked_positions] = batch.masked_labels
    return ids


def epoch_plan(shards: Shards, config: RunConfig, epoch: int):
    return make_pairs(shards, config.inter_sentence, config, seed=config.seed, epoch=epoch)


# ---- content of a batch ----


def test_an_example_is_cls_a_sep_b_sep_and_padding(shards, config):
    batch = make_batches(shards, config).batch(0)
    pairs = epoch_plan(shards, config, 0).take(slice(16))
    for row, ids in enumerate(unmask(batch).tolist()):
        a = shards.tokens[pairs.a_start[row] :][: pairs.a_length[row]].tolist()
        b = shards.tokens[pairs.b_start[row] :][: pairs.b_length[row]].tolist()
        padding = [0] * (32 - 3 - len(a) - len(b))
        assert ids == [2, *a, 3, *b, 3, *padding]
        types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        assert batch.token_type_ids[row].tolist() == types + padding
        assert batch.attention_mask[row].tolist() == [1] * len(types) + padding
    np.testing.assert_array_equal(batch.pair_labels, pairs.label)
    assert batch.num_tokens == sum(pairs.a_length + pairs.b_length + 3)


# ---- a function of seed and step ----


def test_a_batch_depends_only_on_seed_and_step(shards, config):
    forward, seeking = make_batches(shards, config), make_batches(shards, config)
    in_order = [forward.batch(step) for step in range(30)]
    assert forward.stats()["pairs"] < 30 * 16  # more than one epoch
    for step in (29, 0, 12, 13, 5):
        assert same(seeking.batch(step), in_order[step])
    assert not same(in_order[0], in_order[1])
    assert not same(make_batches(shards, configure("seed=1")).batch(0), in_order[0])


def test_epochs_follow_each_other_without_gap_or_overlap(shards, config):
    plans = [epoch_plan(shards, config, epoch) for epoch in range(3)]
    labels = np.concatenate([plan.label for plan in plans])
    firsts = np.concatenate([shards.tokens[plan.a_start] for plan in plans])
    batches = make_batches(shards, config)
    steps = [batches.batch(step) for step in range(len(labels) // 16)]
    assert len({len(plan) for plan in plans}) > 1
    for step, batch in enumerate(steps):
        rows = slice(16 * step, 16 * step + 16)
        np.testing.assert_array_equal(batch.pair_labels, labels[rows])
        np.testing.assert_array_equal(unmask(batch)[:, 1], firsts[rows])


# ---- prefetching ----


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_an_error_in_the_thread_is_raised_at_its_batch_and_ends_the_thread(
    shards, config, monkeypatch
):
    make = Batches.batch

    def fail_at_step_two(batches: Batches, step: int) -> Batch:
        if step == 2:
            raise OSError("the disk is gone")
        return make(batches, step)

    monkeypatch.setattr(Batches, "batch", fail_at_step_two)
    stream = StagedBatches(shards, VOCABULARY, config).prefetch(0, lambda: 0.0)
    assert len(list(itertools.islice(stream, 2))) == 2
    assert threads()
    with pytest.raises(OSError, match="the disk is gone"):
        next(stream)
    assert not threads()


# ---- micro-batches, and sets for evaluation ----


def test_micro_batches_split_the_batch_by_rows(shards, config):
    batch = make_batches(shards, config).batch(3)
    parts = list(micro_batches(batch, 6))
    assert [len(part) for part in parts] == [6, 6, 4]
    for name in vars(batch).keys() - {"masked_positions"}:
        whole = np.concatenate([vars(part)[name] for part in parts])
        np.testing.assert_array_equal(whole, vars(batch)[name])
    np.testing.assert_array_equal(np.concatenate([unmask(part) for part in parts]), unmask(batch))
    assert same(next(micro_batches(batch, 16)), batch)


@pytest.mark.parametrize("option", ["none", "nsp", "sop"])
def test_a_fixed_set_is_the_same_every_time_and_balanced(option):
    held_out = make_prose(60, sentences=20, tokens=8, vocab_size=VOCAB, seed=3)
    config = configure(f"inter_sentence={option}")
    batch = make_set(held_out, config, num_pairs=100)
    assert same(batch, make_set(held_out, config, num_pairs=100))
    assert not same(batch, make_set(held_out, config, num_pairs=100, seed=6))
    labels = [-1] if option == "none" else [0, 1]
    for part in (batch.pair_labels, batch.pair_labels[:40]):
        assert sorted(part) == sorted(labels * (len(part) // len(labels)))


def test_a_fixed_set_is_made_from_a_sample_of_a_large_text_and_all_of_a_small_text(monkeypatch):
    shards = make_prose(200, sentences=20, tokens=8)
    monkeypatch.setattr(chunks, "BLOCK_SENTENCES", 100)
    config = configure()
    spec = config.inter_sentence
    whole = make_pairs(shards, spec, config, seed=5, epoch=0)
    samples = []
    for blocks in (1000, 4):
        monkeypatch.setattr(module, "SAMPLED_BLOCKS", blocks)
        samples.append(fixed_pairs(shards, spec, config, num_pairs=len(whole), seed=5))
    every, sample = samples
    assert sorted(every.a_start) == sorted(whole.a_start)
    assert 4 * 5 < len(sample) < len(whole) / 4
    assert np.ptp(sample.a_start) > 0.6 * len(shards.tokens), "from all over the text"
    assert {*sample.a_start} <= {*whole.a_start}
    assert abs(np.mean(sample.label) - 0.5) < 0.1
