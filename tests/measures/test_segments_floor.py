from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy import silent, toy_config
from toy_shards import make_shards

from albert_lab import paths
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.errors import DamagedFileError
from albert_lab.measures import catalog, segments_floor
from albert_lab.measures.catalog import of_kind
from albert_lab.measures.measure import PairMeasure
from albert_lab.measures.segments_floor import BIGRAMS, EDGE, features, find_or_fit, fit


@pytest.fixture
def text(corpus):
    config = toy_config(corpus)
    folder = prepare(config, silent)
    return config, open_shards(folder, "train"), open_shards(folder, "dev")


def test_features_count_tokens_edges_and_neighbours_of_each_segment(tmp_path):
    size = 40  # of the vocabulary
    shards = make_shards([[3, 4, 2], [5, 6]])
    pairs = catalog.SOP.pairs(shards, toy_config(tmp_path), 9)
    result = features(shards, pairs, size).toarray()
    sides = [*zip(pairs.a_start, pairs.a_length), *zip(pairs.b_start, pairs.b_length)]  # noqa: B905
    # [a or b, tokens, then first and then last ones by place, then neighbours]
    for (start, length), own in zip(sides, np.concatenate(np.split(result, 2, 1)), strict=True):
        tokens = shards.tokens[start : start + length].astype(int)
        expected = np.bincount(tokens, minlength=(1 + 2 * EDGE) * size)
        for place in range(min(EDGE, length)):
            expected[(1 + place) * size + tokens[place]] = 1
            expected[(1 + EDGE + place) * size + tokens[-1 - place]] = 1
        assert own[:-BIGRAMS].tolist() == expected.tolist()
        assert own[-BIGRAMS:].sum() == length - 1


def test_measures_whose_pairs_a_text_does_not_have_are_named_and_left_out(text):
    (config, train, _), said = text, list[str]()
    of_one = replace(train, source_offsets=np.array([0, train.num_documents]))
    assert catalog.NSP.name not in segments_floor._right(config, train, of_one, said.append)
    assert sum("is not scored" in line for line in said) == 3


def toy_epochs(label):
    """Pairs of one-sentence documents of 4 tokens whose label is a function of the two segments'
    first tokens.
    """
    shards = make_shards([[4, 4]] * 3000, vocab_size=40)
    pairs = catalog.SOP.pairs(shards, toy_config(Path()), 10_000)
    second = np.random.default_rng(0).permutation(pairs.b_start)
    labels = label(shards.tokens[pairs.a_start], shards.tokens[second])
    return shards, replace(pairs, b_start=second, label=labels.astype(np.int8))


def accuracy(label) -> float:
    shards, pairs = toy_epochs(label)
    trained, scored = pairs.take(slice(0, 2000)), pairs.take(slice(2000, None))

    def describe(shards, pairs):
        return features(shards, pairs, vocab_size=40)

    classifier = fit(shards, iter([trained] * 8), describe, seed=0)
    return float(np.mean(classifier.predict(describe(shards, scored)) == scored.label))


def test_a_label_that_one_segment_determines_is_learnt():
    assert accuracy(lambda first, second: second % 2) > 0.95


def test_a_label_that_only_the_relation_of_both_segments_determines_is_not_learnt():
    assert accuracy(lambda first, second: (first % 2) == (second % 2)) < 0.6


def test_the_floor_is_fitted_once_per_text_for_all_seeds_and_objectives(text, monkeypatch):
    config, train, dev = text
    result = find_or_fit(config, train, dev, silent)
    sizes = {
        measure.name: len(measure.pairs(dev, config, config.evaluation.num_pairs))
        for measure in of_kind(PairMeasure)
    }
    assert {name: len(right) for name, right in result.items()} == sizes
    monkeypatch.setattr(segments_floor, "fit", None)
    for change in ({"seed": 7}, {"batch_size": 4}):
        again = find_or_fit(config.model_copy(update=change), train, dev, silent)
        assert again == result
    with pytest.raises(TypeError):
        find_or_fit(config.model_copy(update={"max_sequence_length": 24}), train, dev, silent)


def test_a_damaged_floor_in_the_cache_is_named_with_a_remedy(text, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    config, train, dev = text
    find_or_fit(config, train, dev, silent)
    (file,) = paths.cache().glob("segments-floors/*/right.json")
    file.write_text("nothing")
    with pytest.raises(DamagedFileError, match=f"remove {file.parent}"):
        find_or_fit(config, train, dev, silent)
