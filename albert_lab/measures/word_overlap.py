"""What is told of segment pairs by the tokens that both segments have: a floor that needs no
model.
"""

import numpy as np

from albert_lab.data.pairs import Pairs
from albert_lab.data.shards import Shards


def log_odds(train: Shards, fitted_on: Pairs, held_out: Shards, pairs: Pairs) -> np.ndarray:
    """The log-odds of label 1 of held-out pairs [pairs], by a logistic regression on pairs of
    training text.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    vocab_size = 1 + max(int(train.tokens.max()), int(held_out.tokens.max()))
    rarity = _rarity(train, fitted_on, vocab_size)
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    classifier.fit(features(train, fitted_on, rarity), fitted_on.label)
    return classifier.decision_function(features(held_out, pairs, rarity))


def features(shards: Shards, pairs: Pairs, rarity: np.ndarray) -> np.ndarray:
    """Of each pair [pairs, 4]: the tokens that both segments have, counted once.

    Their number, its share of the tokens of the segment with fewer, their share of the rarity of
    all tokens of the pair, and the rarity of the rarest.

    Args:
        rarity: of every token [vocabulary].
    """
    rows = []
    for first, second in _segments(shards, pairs):
        shared = np.intersect1d(first, second, assume_unique=True)
        weight = float(rarity[shared].sum())
        of_all = float(rarity[first].sum() + rarity[second].sum()) - weight
        rarest = float(rarity[shared].max(initial=0))
        rows.append(
            (len(shared), len(shared) / min(len(first), len(second)), weight / of_all, rarest)
        )
    return np.array(rows)


def _rarity(shards: Shards, pairs: Pairs, vocab_size: int) -> np.ndarray:
    """The negative logarithm of the share of segments that have a token [vocabulary], smoothed."""
    segments = [segment for pair in _segments(shards, pairs) for segment in pair]
    counts = np.bincount(np.concatenate(segments), minlength=vocab_size)
    return -np.log((counts + 1) / (len(segments) + 2))


def _segments(shards: Shards, pairs: Pairs) -> list[tuple[np.ndarray, np.ndarray]]:
    """The different tokens of the first and of the second segment of each pair."""
    sides = []
    for starts, lengths in ((pairs.a_start, pairs.a_length), (pairs.b_start, pairs.b_length)):
        places = zip(starts.tolist(), lengths.tolist(), strict=True)
        sides.append([np.unique(shards.tokens[start : start + length]) for start, length in places])
    return list(zip(*sides, strict=True))
