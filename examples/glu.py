"""A block of your own: an FFN with a gate, chosen by `ffn_block=glu`."""

from dataclasses import replace

from torch import Tensor, nn

from albert_lab.model.blocks import FFN_BLOCKS, FfnBlock
from albert_lab.model.shape import EncoderShape


class Glu(FfnBlock):
    """An FFN with a gate (Shazeer 2020, arXiv 2002.05202); two thirds of the size, so it has as
    many parameters.
    """

    def build(self, shape: EncoderShape) -> None:
        size = round(shape.intermediate_size * 2 / 3)
        super().build(replace(shape, intermediate_size=size))
        # A matrix of its own, since LAMB and Muon use the norm of each.
        self.gate = nn.Linear(shape.hidden_size, size)

    def compute(self, hidden_states: Tensor) -> Tensor:
        """See FfnBlock."""
        return self.output(
            self.activation(self.gate(hidden_states)) * self.intermediate(hidden_states)
        )


FFN_BLOCKS["glu"] = Glu
