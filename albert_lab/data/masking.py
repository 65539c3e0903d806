"""n-gram masking: chooses the tokens of a batch that the model predicts, and replaces them in the
input.
"""

from collections.abc import Callable

import numpy as np

from albert_lab.config.data import MaskingConfig

Three = tuple[np.ndarray, np.ndarray, np.ndarray]
Mask = Callable[..., Three]  # with the arguments and results of mask()


def mask(
    input_ids: np.ndarray,
    attention_mask: np.ndarray,
    can_mask: np.ndarray,
    word_starts: np.ndarray,
    masking: MaskingConfig,
    mask_id: int,
    rng: np.random.Generator,
) -> Three:
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


def _words(starts: np.ndarray, can_mask: np.ndarray) -> Three:
    """The flat positions of text [tokens]; the place among these of the first token of each word
    [words], and the number of its segment, from 1.
    """
    text = np.flatnonzero(can_mask)
    # Differs from the release: a segment's first token starts a word. In the release, the remainder
    # of a word that truncation cut may join the last word of the previous segment.
    begins_segment = (np.diff(text, prepend=-2) != 1) | (text % can_mask.shape[1] == 0)
    first = np.flatnonzero(starts.ravel()[text] | begins_segment)
    return text, first, np.cumsum(begins_segment)[first]


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
    text, first, segment = _words(starts, can_mask)
    widths = np.diff(first, append=len(text))
    row = text[first] // can_mask.shape[1]
    ngrams = _draw_ngrams(len(first), max_ngram, rng)
    order = np.lexsort((rng.random(len(first)), row))
    num_words = np.bincount(row, minlength=len(budget))
    first_try = np.cumsum(num_words) - num_words

    # Behind the last word are some of no segment, which no n-gram reaches.
    padding = (0, max_ngram)
    segment = np.pad(segment, padding)
    width = np.pad(widths, padding)
    end = np.pad(first + widths, padding)
    taken = np.zeros(len(end), dtype=bool)
    steps = np.arange(max_ngram)[:, None]
    left = budget.copy()
    # All sequences at once: every round tries the next word of each sequence that has budget left.
    for tried in range(num_words.max(initial=0)):
        rows = np.flatnonzero((left > 0) & (tried < num_words))
        if not len(rows):
            break
        word = order[first_try[rows] + tried]
        following = word + steps
        # Differs from the release: an n-gram ends with its segment. In the release, it may continue
        # in the next segment.
        fits = (
            (ngrams[word] > steps)
            & (segment[following] == segment[word])
            & (end[following] - first[word] <= left[rows])
        )
        fits &= ~(fits & taken[following]).any(axis=0)
        taken[following[fits]] = True
        left[rows] -= np.where(fits, width[following], 0).sum(axis=0)
    return text[np.repeat(taken[: len(first)], widths)]


def _draw_ngrams(num_words: int, max_ngram: int, rng: np.random.Generator) -> np.ndarray:
    """The intended number of words [words] of the n-gram that begins at each word: n with a share
    of 1 / n.
    """
    share = 1 / np.arange(1, max_ngram + 1)
    bounds = np.cumsum(share / share.sum())
    return 1 + np.searchsorted((bounds / bounds[-1])[:-1], rng.random(num_words), side="right")
