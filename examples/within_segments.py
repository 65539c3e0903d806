"""Attention within a segment only: the control of the measure `coherence`.

[CLS] belongs to the first of the two segments and never sees the second. What such a model knows about the order of
two segments is what the first one shows by itself, so whether the second is from the same document cannot matter.
"""

import torch

from albert_lab.extend import PositionEncoding, position_encoding


@position_encoding("within-segments")
class WithinSegments(PositionEncoding):
    """Learned positions, as in ALBERT and BERT, and no attention between segments."""

    def bias(self, token_type_ids: torch.Tensor) -> torch.Tensor:
        """0 between tokens of one segment, minus infinity between others: [batch, 1, sequence, sequence]."""
        is_other = token_type_ids[:, None, :, None] != token_type_ids[:, None, None, :]
        return torch.zeros(is_other.shape, device=is_other.device).masked_fill(is_other, -torch.inf)
