import numpy as np
import pytest
from toy import toy_config
from toy_shards import make_shards

from albert_lab import paths
from albert_lab.config.compose import load_option
from albert_lab.config.schema import InterSentenceConfig
from albert_lab.data import lexical_floor
from albert_lab.data.batches import fixed_pairs
from albert_lab.data.lexical_floor import accuracy, bags, find_or_fit
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards


def silent(_line):
    pass


@pytest.fixture
def text(corpus):
    config = toy_config(corpus)
    folder = prepare(config, silent)
    return config, open_shards(folder, "train"), open_shards(folder, "dev")


def test_a_bag_counts_the_tokens_of_each_segment_separately():
    shards = make_shards([[3, 4, 2], [5, 6]])
    pairs = fixed_pairs(
        shards,
        load_option("inter_sentence", "sop", InterSentenceConfig),
        num_pairs=9,
        max_sequence_length=32,
        short_sequence_probability=0,
        seed=0,
    )
    found = bags(shards, pairs, vocab_size=40).toarray()
    for row, line in enumerate(found):
        a, b = (
            shards.tokens[start[row] : start[row] + length[row]]
            for start, length in ((pairs.a_start, pairs.a_length), (pairs.b_start, pairs.b_length))
        )
        assert line[:40].tolist() == np.bincount(a, minlength=40).tolist()
        assert line[40:].tolist() == np.bincount(b, minlength=40).tolist()


def one_hot(columns: np.ndarray, width: int):
    from scipy.sparse import csr_matrix

    return csr_matrix(np.eye(width)[columns].sum(1))


def test_a_label_that_one_token_of_one_segment_determines_is_learnt():
    rng = np.random.default_rng(0)
    tokens = rng.integers(8, size=(600, 2))
    features, labels = one_hot(tokens + np.array([0, 8]), 16), (tokens[:, 1] < 4).astype(int)
    assert accuracy(features[:400], labels[:400], features[400:], labels[400:]) > 0.95


def test_a_label_that_only_the_relation_of_both_segments_determines_is_not_learnt():
    rng = np.random.default_rng(0)
    tokens = rng.integers(8, size=(4000, 2))
    features, labels = one_hot(tokens + np.array([0, 8]), 16), ((tokens[:, 0] < 4) == (tokens[:, 1] < 4)).astype(int)
    assert accuracy(features[:3000], labels[:3000], features[3000:], labels[3000:]) < 0.56


def test_the_floor_is_fitted_once_per_text_for_all_seeds_and_objectives(text, monkeypatch):
    config, train, dev = text
    found = find_or_fit(config, train, dev, ["nsp", "sop"], silent)
    assert found.keys() == {"nsp", "sop"}
    assert all(0 < floor < 100 for floor in found.values())
    monkeypatch.setattr(lexical_floor, "accuracy", None)
    for change in ({"seed": 7}, {"batch_size": 4}):
        assert find_or_fit(config.model_copy(update=change), train, dev, ["nsp", "sop"], silent) == found
    with pytest.raises(TypeError):
        find_or_fit(config.model_copy(update={"max_sequence_length": 24}), train, dev, ["nsp", "sop"], silent)


@pytest.mark.parametrize("damage", ["", '{"sop": 50', '{"sop": NaN}', '{"nsp": 50.0}', '{"sop": 750}', "[50]"])
def test_damaged_floors_in_the_cache_are_fitted_again(text, damage, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    config, train, dev = text
    said = []
    whole = find_or_fit(config, train, dev, ["sop"], said.append)
    (file,) = paths.cache().glob("lexical-floors/*/floors.json")
    file.write_text(damage)
    assert find_or_fit(config, train, dev, ["sop"], said.append) == whole
    assert "fitted again" in said[-1]
    assert "floors.json" in said[-1]
