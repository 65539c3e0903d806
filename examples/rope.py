"""Rotary position encoding: query and key are turned by an angle that grows with their place.

Su et al. 2021, "RoFormer" (arXiv 2104.09864). ModernBERT and NeoBERT have it; ALBERT and BERT learn a vector for
each place.
"""

import torch

from albert_lab.extend import EncoderShape, PositionEncoding, position_encoding

BASE = 10_000.0


@position_encoding("rope")
class Rope(PositionEncoding):
    has_table = False

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__(shape)
        half = shape.hidden_size // shape.num_attention_heads // 2
        if shape.hidden_size % (2 * shape.num_attention_heads):
            raise ValueError("rope turns pairs of numbers: the size of a head must be even")
        rates = BASE ** -(torch.arange(half) / half)
        angles = torch.arange(shape.max_position_embeddings)[:, None] * rates  # [place, half of a head]
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, query: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self._turned(query), self._turned(key)

    def _turned(self, states: torch.Tensor) -> torch.Tensor:
        """[batch, heads, sequence, head size]; the first half of a head and the second are the pairs."""
        places = states.shape[2]
        cos, sin = self.get_buffer("cos")[:places], self.get_buffer("sin")[:places]
        first, second = states.float().chunk(2, dim=-1)
        turned = torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
        return turned.to(states.dtype)
