"""n-gram masking: chooses the tokens of a batch that the model predicts, and replaces them in the
input.
"""

from collections.abc import Callable

import numpy as np

from albert_lab.config.data import MaskingConfig

# with the arguments and results of mask()
Mask = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]


def mask(
    input_ids: np.ndarray,
    attention_mask: np.ndarray,
    can_mask: np.ndarray,
    word_starts: np.ndarray,
    masking: MaskingConfig,
    mask_id: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masked ids [batch, sequence], positions [masked] in the flattened batch, ascending, and the
    original ids.

    Source: section 3.1 (n-gram masking); create_pretraining_data.py, create_masked_lm_predictions.

    Args:
        input_ids: [batch, sequence].
        attention_mask: [batch, sequence] bool, True at real tokens: masking.probability is a share
            of these.
        can_mask: [batch, sequence] bool, True at tokens of text. A contiguous run of them is a
            segment.
        word_starts: [vocab] bool, True for tokens that start a word.
        masking: shares, cap and longest n-gram.
        mask_id: id of [MASK].
        rng: the result depends only on its state and the batch.
    """
    budget = np.maximum(np.rint(masking.probability * attention_mask.sum(axis=1)), 1).astype(
        np.int64
    )
    if masking.max_predictions is not None:
        budget = np.minimum(budget, masking.max_predictions)

    positions = _choose_tokens(word_starts[input_ids], can_mask, budget, masking.max_ngram, rng)
    labels = input_ids.ravel()[positions]
    draw = rng.random(len(positions))
    # includes special tokens, as in the release
    random_ids = rng.integers(len(word_starts), size=len(positions))
    replacement = np.where(draw < masking.mask_share + masking.random_share, random_ids, labels)
    masked_ids = input_ids.copy()
    masked_ids.ravel()[positions] = np.where(draw < masking.mask_share, mask_id, replacement)
    return masked_ids, positions, labels


METHODS: dict[str, Mask] = {"n-gram": mask}


def _find_words(starts: np.ndarray, can_mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start and end [words] of each word in the flattened batch, in order."""
    # Differs from the release: a segment's first token starts a word. In the release, the remainder
    # of a word that truncation cut may join the last word of the previous segment.
    starts = starts.copy()
    starts[:, 1:] |= ~can_mask[:, :-1]
    starts[:, 0] = True
    boundaries = np.flatnonzero(starts | ~can_mask)
    first = np.flatnonzero(can_mask.ravel()[boundaries])
    return boundaries[first], np.append(boundaries, can_mask.size)[first + 1]


def _choose_tokens(
    starts: np.ndarray,
    can_mask: np.ndarray,
    budget: np.ndarray,
    max_ngram: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Flat positions [masked] of whole words in n-grams, at most budget [batch] tokens per
    sequence.

    Words of a sequence are tried in random order. The n-gram that begins at a word is taken if none
    of its words is taken yet; it is shortened to the remaining budget.
    """
    start, end = _find_words(starts, can_mask)
    row = start // can_mask.shape[1]
    # none at the number that stands for no word
    ngrams = np.append(_draw_ngrams(len(start), max_ngram, rng), 0)
    order = _draw_order(row, len(budget), rng)

    steps = np.arange(max_ngram)[:, None]
    # Differs from the release: an n-gram ends with its segment. In the release, it may continue in
    # the next segment.
    is_new = (start[1:] != end[:-1]) | (row[1:] != row[:-1])
    segment = np.pad(np.cumsum(np.append(0, is_new)), (0, max_ngram), constant_values=-1)
    starts = np.append(start, 0)
    ends = np.pad(end, (0, max_ngram))
    width = np.pad(end - start, (0, max_ngram))
    taken = np.zeros(len(width), dtype=bool)
    # All sequences at once: every round tries the next word of each sequence that has budget left.
    rows = np.arange(len(budget))
    left = budget
    for words in order:
        if not len(rows):
            break
        word = words[rows]
        following = word + steps
        fits = (
            (ngrams[word] > steps)
            & (segment[following] == segment[word])
            & (ends[following] - starts[word] <= left)
        )
        fits &= ~(fits & taken[following]).any(axis=0)
        taken[following[fits]] = True
        left = left - np.where(fits, width[following], 0).sum(axis=0)
        rows = rows[left > 0]
        left = left[left > 0]
    words = np.flatnonzero(taken[: len(start)])
    first = np.cumsum(width[words]) - width[words]
    return np.repeat(start[words] - first, width[words]) + np.arange(width[words].sum())


def _draw_ngrams(num_words: int, max_ngram: int, rng: np.random.Generator) -> np.ndarray:
    """The intended number of words [words] of the n-gram that begins at each word: n with a share
    of 1 / n.
    """
    share = 1 / np.arange(1, max_ngram + 1)
    bounds = np.cumsum(share / share.sum())
    return 1 + np.searchsorted((bounds / bounds[-1])[:-1], rng.random(num_words), side="right")


def _draw_order(row: np.ndarray, num_rows: int, rng: np.random.Generator) -> np.ndarray:
    """The words of each sequence in random order [attempt, batch]; the number of words where there
    is none left.
    """
    words_of_row = np.bincount(row, minlength=num_rows)
    inside = np.arange(words_of_row.max(initial=0)) < words_of_row[:, None]
    keys = np.full(inside.shape, np.inf)
    keys[inside] = rng.random(len(row))
    # Sorting each row by itself takes a seventh of the time of sorting all words at once.
    order = np.argsort(keys, axis=1) + (np.cumsum(words_of_row) - words_of_row)[:, None]
    return np.where(inside, order, len(row)).T
