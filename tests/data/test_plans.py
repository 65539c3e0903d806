import numpy as np
import pytest
from test_batches import VOCABULARY, configure, same
from toy_shards import make_prose

from albert_lab import paths
from albert_lab.data import batches as module
from albert_lab.data import pairs, plans
from albert_lab.data.batches import Batches, fixed_pairs
from albert_lab.data.pairs import make_pairs

STEPS = 60


@pytest.fixture(scope="module")
def shards():
    return make_prose(30, sentences=20, tokens=8, vocab_size=20_000)


def all_of(shards, config):
    batches = Batches(shards, VOCABULARY, config)
    return [batches.batch(step) for step in range(STEPS)], batches


def folders() -> list[str]:
    return sorted(path.name.rpartition("-")[2] for path in (paths.cache() / "plans").iterdir() if path.is_dir())


def test_batches_of_plans_on_disk_are_those_of_plans_in_memory(shards, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path))
    config = configure()
    expected, in_memory = all_of(shards, config)
    assert not (tmp_path / "plans").exists(), "little text leaves no files"
    monkeypatch.setattr(plans, "LARGE_TOKENS", 0)
    for batch_list, batches in (all_of(shards, config), all_of(shards, config)):
        assert all(same(one, other) for one, other in zip(batch_list, expected, strict=True))
        assert batches.stats() == in_memory.stats()


def test_a_plan_is_made_once_mapped_and_dropped_when_its_epoch_is_over(shards, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(plans, "LARGE_TOKENS", 0)
    epochs_made = []

    def counted(*arguments, **settings):
        epochs_made.append(settings["epoch"])
        return make_pairs(*arguments, **settings)

    def remembered(*arguments):
        mapped.append(find(*arguments))
        return mapped[-1]

    mapped, find = [], plans.find_or_make
    monkeypatch.setattr(plans, "find_or_make", remembered)
    monkeypatch.setattr(module, "make_pairs", counted)
    config = configure()
    first, second = (Batches(shards, VOCABULARY, config) for _ in range(2))
    for batches in (first, second):
        batches.batch(0)
    assert epochs_made == [0]
    assert len(mapped) >= 2
    assert all(isinstance(plan.a_start, np.memmap) for plan in mapped)
    for step in range(STEPS):
        first.batch(step)
    epochs = len(first.state_dict()["starts"]) - 1
    assert epochs > 3
    assert set(folders()) <= {str(epoch) for epoch in (epochs - 2, epochs - 1, epochs)}
    assert second.batch(1) is not None, "what is mapped can still be read"
    for batches in (first, second):
        batches.drop_plans()
    assert list((tmp_path / "plans").iterdir()) == [], "a run that has ended leaves neither plans nor locks"


def test_a_fixed_set_is_made_from_a_sample_of_a_large_text_and_all_of_a_small_text(monkeypatch):
    shards = make_prose(200, sentences=20, tokens=8)
    monkeypatch.setattr(pairs, "BLOCK_SENTENCES", 100)
    spec = configure().inter_sentence
    sizes = {"max_sequence_length": 32, "short_sequence_probability": 0.1, "seed": 5}
    whole = make_pairs(shards, spec, **sizes, epoch=0)
    monkeypatch.setattr(module, "SAMPLED_BLOCKS", 1000)
    every = fixed_pairs(shards, spec, num_pairs=len(whole), **sizes)
    assert sorted(every.a_start.tolist()) == sorted(whole.a_start.tolist())
    monkeypatch.setattr(module, "SAMPLED_BLOCKS", 4)
    sample = fixed_pairs(shards, spec, num_pairs=len(whole), **sizes)
    assert 4 * 5 < len(sample) < len(whole) / 4
    assert np.ptp(sample.a_start) > 0.6 * shards.num_tokens, "from all over the text"
    assert set(sample.a_start.tolist()) <= set(whole.a_start.tolist())
    assert abs(np.mean(sample.label) - 0.5) < 0.1
