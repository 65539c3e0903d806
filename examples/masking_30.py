"""30 % of the tokens are masked instead of 15 %, in the same n-grams.

Wettig et al. 2023, "Should You Mask 15% in Masked Language Modeling?" (arXiv 2202.08005); ModernBERT masks 30 %.
Held-out text is masked as in every run, 15 % of it, so that the scores of both can be compared.
"""

import numpy as np

from albert_lab.extend import MaskingConfig, mask, masking

SHARE = 0.30


@masking("thirty-percent", share=SHARE)
def thirty_percent(
    input_ids: np.ndarray,
    attention_mask: np.ndarray,
    can_mask: np.ndarray,
    word_starts: np.ndarray,
    settings: MaskingConfig,
    mask_id: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    settings = settings.model_copy(update={"probability": SHARE, "max_predictions": None})
    return mask(input_ids, attention_mask, can_mask, word_starts, settings, mask_id, rng)
