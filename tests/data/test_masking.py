from itertools import chain, groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_lab.config.compose import load
from albert_lab.config.data import MaskingConfig
from albert_lab.data.masking import mask

PAD, CLS, SEP, MASK = 0, 2, 3, 4
VOCAB = 1000
AS_DESCRIBED = load(["masking=as-described"]).masking
WORD_STARTS = np.arange(VOCAB) % 10 < 7  # of the ids from 5 on, 3 in 10 continue a word


def make_batch(rows: int, length: int, rng: np.random.Generator, padding: int = 0):
    """Ids of random words in two segments, attention mask and text positions [rows, length]."""
    input_ids = rng.integers(5, VOCAB, (rows, length))
    used = length - padding
    middle = rng.integers(2, used - 2, rows)
    column = np.arange(length)
    special = (column == 0) | (column == middle[:, None]) | (column == used - 1)
    attention_mask = np.broadcast_to(column < used, input_ids.shape)
    input_ids[special] = SEP
    input_ids[:, 0] = CLS
    input_ids[~attention_mask] = PAD
    return input_ids, attention_mask, attention_mask & ~special


def mask_batch(batch, masking: MaskingConfig, seed: int = 0, word_starts: np.ndarray = WORD_STARTS):
    input_ids, attention_mask, can_mask = batch
    return mask(
        input_ids, attention_mask, can_mask, word_starts, masking, MASK, np.random.default_rng(seed)
    )


def configure(**changes) -> MaskingConfig:
    return AS_DESCRIBED.model_copy(update=changes)


def words_of(row: np.ndarray, can_mask: np.ndarray) -> list[list[list[int]]]:
    """Columns of each word of each segment of one sequence."""
    segments = []
    for column, (token, is_text) in enumerate(zip(row.tolist(), can_mask.tolist(), strict=True)):
        if not is_text:
            segments.append([])
        elif WORD_STARTS[token] or not segments[-1]:
            segments[-1].append([column])
        else:
            segments[-1][-1].append(column)
    return segments


def mask_literally(
    segments, budget: int, max_ngram: int, rng: np.random.Generator
) -> list[list[list[int]]]:
    """The released algorithm, candidate by candidate: the n-grams chosen, each a list of words."""
    share = 1 / np.arange(1, max_ngram + 1)
    candidates = [
        segment[first : first + max_ngram] for segment in segments for first in range(len(segment))
    ]
    chosen, covered = [], set()
    for number in rng.permutation(len(candidates)):
        if len(covered) >= budget:
            break
        n = min(rng.choice(max_ngram, p=share / share.sum()) + 1, len(candidates[number]))
        words = candidates[number][:n]
        while words and len(covered) + sum(map(len, words)) > budget:
            words = words[:-1]
        tokens = {*chain(*words)}
        if tokens and not tokens & covered:
            chosen.append(words)
            covered |= tokens
    return chosen


def runs_of(masked: set[int], segments) -> list[int]:
    """Lengths, in words, of the runs of masked words."""
    return [
        sum(1 for _ in run)
        for segment in segments
        for is_masked, run in groupby(word[0] in masked for word in segment)
        if is_masked
    ]


def distribution(values) -> np.ndarray:
    return np.bincount(np.minimum(values, 6), minlength=7)[1:] / len(values)


@pytest.fixture(scope="module")
def large():
    """More than 100,000 tokens."""
    return make_batch(220, 512, np.random.default_rng(0))


def test_masked_words_are_distributed_as_by_the_released_algorithm(large):
    masking = configure()
    _, positions, _ = mask_batch(large, masking)
    rows, columns = np.divmod(positions, 512)
    rng = np.random.default_rng(1)
    ours, literal, num_masked, ngrams = [], [], 0, []
    for row in range(len(large[0])):
        segments = words_of(large[0][row], large[2][row])
        ours += runs_of({*columns[rows == row]}, segments)
        chosen = mask_literally(segments, 77, masking.max_ngram, rng)
        tokens = {*chain(*chain(*chosen))}
        literal += runs_of(tokens, segments)
        ngrams += map(len, chosen)
        num_masked += len(tokens)

    assert len(literal) > 5000
    np.testing.assert_allclose(
        distribution(ours), distribution(literal), atol=4 * np.sqrt(0.5 / len(literal))
    )
    assert len(positions) == pytest.approx(num_masked, rel=1e-3)
    np.testing.assert_allclose(distribution(ngrams)[:3], [0.58, 0.26, 0.16], atol=0.015)


def test_fifteen_percent_are_masked_when_described_and_at_most_twenty_tokens_when_official(large):
    num_tokens = int(large[1].sum())
    assert num_tokens > 100_000
    for option, rate in (("as-described", 77 / 512), ("official", 20 / 512)):
        masking = load([f"masking={option}"]).masking
        _, positions, _ = mask_batch(large, masking)
        assert len(positions) / num_tokens == pytest.approx(rate, abs=1e-4)
        assert masking.most_predictions(512) == 512 * rate


def test_most_masked_tokens_become_the_mask_some_a_random_token_and_some_are_kept(large):
    masked_ids, positions, labels = mask_batch(large, configure())
    read = masked_ids.ravel()[positions]
    n = len(positions)
    is_mask, is_same = read == MASK, read == labels
    other = read[~is_mask & ~is_same]
    assert n > 15_000
    assert is_mask.mean() == pytest.approx(0.8 + 0.1 / VOCAB, abs=4 * np.sqrt(0.16 / n))
    assert is_same.mean() == pytest.approx(0.1 + 0.1 / VOCAB, abs=4 * np.sqrt(0.09 / n))
    # from all over the vocabulary alike
    counts = np.histogram(other, bins=10, range=(0, VOCAB))[0]
    np.testing.assert_allclose(counts, len(other) / 10, atol=4 * np.sqrt(len(other) / 10))


def test_whole_words_of_text_are_masked_and_nothing_else_changes(large):
    masked_ids, positions, labels = mask_batch(large, configure())
    input_ids, _, can_mask = large
    assert np.all(np.diff(positions) > 0)
    assert np.all(can_mask.ravel()[positions])
    is_masked = np.zeros(input_ids.shape, dtype=bool)
    is_masked.ravel()[positions] = True
    masked_ids.ravel()[positions] = labels
    np.testing.assert_array_equal(masked_ids, input_ids)
    for row in range(len(input_ids)):
        for word in chain(*words_of(input_ids[row], can_mask[row])):
            assert len({*is_masked[row, word]}) == 1


def test_a_word_does_not_reach_into_the_next_segment():
    # 8 continues a word, but starts the second segment
    text = np.array([[CLS, 5, 8, 8, SEP, 8, 8, 5, SEP, PAD]])
    starts = np.arange(VOCAB) != 8
    batch = (text, text != PAD, text > SEP)
    seen = {
        tuple(mask_batch(batch, configure(probability=0.33, max_ngram=1), seed, starts)[1])
        for seed in range(50)
    }
    assert seen == {(1, 2, 3), (5, 6, 7)}


@given(
    rows=st.integers(1, 6),
    length=st.integers(6, 40),
    padding=st.integers(0, 10),
    probability=st.floats(0.01, 0.9),
    cap=st.none() | st.integers(1, 8),
    max_ngram=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_the_budget_is_never_exceeded(rows, length, padding, probability, cap, max_ngram, seed):
    batch = make_batch(rows, length, np.random.default_rng(seed), padding=min(padding, length - 6))
    masking = configure(probability=probability, max_predictions=cap, max_ngram=max_ngram)
    _, positions, _ = mask_batch(batch, masking, seed)
    for row in range(rows):
        budget = min(cap or length, max(1, round(probability * int(batch[1][row].sum()))))
        masked = np.count_nonzero(positions // length == row)
        shortest = min(map(len, chain(*words_of(batch[0][row], batch[2][row]))))
        assert masked <= budget
        assert masked > 0 or shortest > budget
