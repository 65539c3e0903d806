"""An FFN with a gate (GeGLU): one half of the inner layer decides how much of the other half passes.

Shazeer 2020, "GLU Variants Improve Transformer" (arXiv 2002.05202). ModernBERT has it. The inner layer has two thirds
of the size of the usual one, so that both have as many parameters and FLOPs.
"""

import torch
from torch import nn

from albert_lab.extend import EncoderShape, FfnBlock, ffn_block


@ffn_block("glu")
class Glu(FfnBlock):
    def build(self, shape: EncoderShape) -> None:
        super().build(shape)  # the activation
        size = round(shape.intermediate_size * 2 / 3)
        # Two matrices instead of one, since LAMB and Muon use the norm of each.
        self.gate = nn.Linear(shape.hidden_size, size)
        self.intermediate = nn.Linear(shape.hidden_size, size)
        self.output = nn.Linear(size, shape.hidden_size)

    def compute(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.output(self.activation(self.gate(hidden_states)) * self.intermediate(hidden_states))
