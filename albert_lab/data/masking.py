"""n-gram masking: chooses the tokens of a batch that the model predicts, and replaces them in the input."""

import numpy as np

from albert_lab.config.schema import MaskingConfig


def mask(
    input_ids: np.ndarray,
    attention_mask: np.ndarray,
    can_mask: np.ndarray,
    word_starts: np.ndarray,
    masking: MaskingConfig,
    mask_id: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masked ids [batch, sequence], positions [masked] in the flattened batch, ascending, and the original ids.

    Source: section 3.1 (n-gram masking); create_pretraining_data.py, create_masked_lm_predictions.

    Args:
        input_ids: [batch, sequence].
        attention_mask: [batch, sequence] bool, True at real tokens: masking.probability is a share of these.
        can_mask: [batch, sequence] bool, True at tokens of text. A contiguous run of them is a segment.
        word_starts: [vocab] bool, True for tokens that start a word.
        masking: shares, cap and longest n-gram.
        mask_id: id of [MASK].
        rng: the result depends only on its state and the batch.
    """
    budget = np.maximum(np.rint(masking.probability * attention_mask.sum(axis=1)), 1).astype(np.int64)
    if masking.max_predictions is not None:
        budget = np.minimum(budget, masking.max_predictions)

    positions = _choose_tokens(word_starts[input_ids], can_mask, budget, masking.max_ngram, rng)
    labels = input_ids.ravel()[positions]
    draw = rng.random(len(positions))
    random_ids = rng.integers(len(word_starts), size=len(positions))  # includes special tokens, as in the release
    replacement = np.where(draw < masking.mask_share + masking.random_share, random_ids, labels)
    masked_ids = input_ids.copy()
    masked_ids.ravel()[positions] = np.where(draw < masking.mask_share, mask_id, replacement)
    return masked_ids, positions, labels


def _find_words(starts: np.ndarray, can_mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start and end [words] of each word in the flattened batch, in order."""
    # Differs from the release: a segment's first token starts a word. In the release, the remainder of a word that
    # truncation cut may join the last word of the previous segment.
    starts = starts.copy()
    starts[:, 1:] |= ~can_mask[:, :-1]
    starts[:, 0] = True
    boundaries = np.flatnonzero(starts | ~can_mask)
    is_word = can_mask.ravel()[boundaries]
    return boundaries[is_word], np.append(boundaries[1:], can_mask.size)[is_word]


def _choose_tokens(
    starts: np.ndarray, can_mask: np.ndarray, budget: np.ndarray, max_ngram: int, rng: np.random.Generator
) -> np.ndarray:
    """Flat positions [masked] of whole words in n-grams, at most budget [batch] tokens per sequence.

    Words of a sequence are tried in random order. The n-gram that begins at a word is taken if none of its words is
    taken yet; it is shortened to the remaining budget.
    """
    start, end = _find_words(starts, can_mask)
    num_words = len(start)
    row = start // can_mask.shape[1]

    # Differs from the release: an n-gram ends with its segment. In the release, it may continue in the next segment.
    follows = (end[:-1] == start[1:]) & (row[:-1] == row[1:])
    available = np.ones(num_words, dtype=np.int64)  # words from here to the end of the segment, at most max_ngram
    tokens = np.zeros((max_ngram + 1, num_words), dtype=np.int64)  # of the n-gram that begins here, for each n
    tokens[1] = end - start
    for n in range(2, max_ngram + 1):
        available[:-1] = np.where(follows, np.minimum(available[1:] + 1, n), 1)
        tokens[n, :-1] = tokens[1, :-1] + np.where(follows, tokens[n - 1, 1:], 0)
        tokens[n, -1:] = tokens[1, -1:]

    share = 1 / np.arange(1, max_ngram + 1)
    ngram = np.minimum(rng.choice(max_ngram, size=num_words, p=share / share.sum()) + 1, available)
    order = np.argsort(row + rng.random(num_words))
    words_of_row = np.bincount(row, minlength=len(budget))
    first_word = np.cumsum(words_of_row) - words_of_row

    taken = np.zeros(num_words + max_ngram, dtype=bool)
    left = budget.copy()
    steps = np.arange(max_ngram)
    rows = np.arange(len(budget))
    for attempt in range(words_of_row.max(initial=0)):
        rows = rows[(left[rows] > 0) & (words_of_row[rows] > attempt)]
        if not len(rows):
            break
        word = order[first_word[rows] + attempt]
        fitting = np.count_nonzero(tokens[1:, word] <= left[rows], axis=0)
        n = np.minimum(ngram[word], fitting)
        words = word[:, None] + steps
        inside = steps < n[:, None]
        n[np.any(taken[words] & inside, axis=1)] = 0
        taken[words[steps < n[:, None]]] = True
        left[rows] -= tokens[n, word]
    return np.flatnonzero(can_mask)[np.repeat(taken[:num_words], end - start)]
