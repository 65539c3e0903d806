"""LayerNorm before attention and FFN instead of after the residual, and once more on the output of the encoder.

Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture" (arXiv 2002.04745). ModernBERT and NeoBERT
have it; ALBERT and BERT normalise after the residual.
"""

from collections.abc import Callable

import torch
from torch import nn

from albert_lab.extend import NormPlacement, norm_placement


@norm_placement("pre")
class PreNorm(NormPlacement):
    norms_output = True  # otherwise nothing would normalise what the heads read

    def forward(
        self,
        hidden_states: torch.Tensor,
        compute: Callable[[torch.Tensor], torch.Tensor],
        layer_norm: nn.Module,
        dropout: nn.Module,
    ) -> torch.Tensor:
        return hidden_states + dropout(compute(layer_norm(hidden_states)))
