from types import SimpleNamespace
from typing import Any

import numpy as np

from albert_lab.data.pairs import Pairs
from albert_lab.measures.word_overlap import features, log_odds


def pairs_of(tokens, label) -> tuple[Any, Pairs]:
    """A text of segments of four tokens, of which each two are a pair."""
    starts = np.arange(0, len(tokens), 8)
    lengths = np.full(len(starts), 4, dtype=np.int32)
    return SimpleNamespace(tokens=tokens), Pairs(starts, lengths, starts + 4, lengths, label, {})


def test_features_are_the_number_share_and_rarity_of_shared_tokens():
    shards, pairs = pairs_of(np.array([1, 2, 2, 3, 3, 2, 5, 6], dtype=np.uint16), np.array([0]))
    rarity = np.array([0, 1, 2, 4, 8, 16, 32], dtype=float)
    assert features(shards, pairs, rarity).tolist() == [[2, 2 / 3, 6 / 55, 4]]


def test_pairs_of_two_topics_are_told_by_their_words_and_others_are_not():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 400)
    topic = rng.integers(0, 50, 400)
    topics = np.stack([topic, (topic + label) % 50], axis=1)
    words = 10 * topics[:, :, None] + rng.integers(0, 10, (400, 2, 4))
    noise = rng.integers(0, 500, words.size)

    def accuracy(tokens) -> float:
        shards, pairs = pairs_of(tokens.astype(np.uint16), label)
        return np.mean((log_odds(shards, pairs, shards, pairs) > 0) == label)

    assert accuracy(words.ravel()) > 0.75
    assert accuracy(noise) < 0.6
