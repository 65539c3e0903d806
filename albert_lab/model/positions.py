"""The position encodings: a learned vector for each place in the embeddings, or rotary."""

import torch
from torch import nn

from albert_lab.model.shape import EncoderShape

BASE = 10_000.0


class PositionEncoding(nn.Module):
    """What tells the encoder the place of a token; one for all layers.

    Attributes:
        has_table: whether the embeddings add a learned vector for each place, as in ALBERT and BERT.
    """

    has_table = True

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()

    def rotate(self, query: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Query and key, both [batch, heads, sequence, head size], before their product."""
        return query, key


class Rope(PositionEncoding):
    """Query and key are turned by an angle that grows with their place (Su et al. 2021, arXiv 2104.09864)."""

    has_table = False

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__(shape)
        half = shape.hidden_size // shape.num_attention_heads // 2
        rates = BASE ** -(torch.arange(half) / half)
        angles = torch.arange(shape.max_position_embeddings)[:, None] * rates  # [place, half of a head]
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, query: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See PositionEncoding; the first half of a head and the second are the pairs."""
        return self._turned(query), self._turned(key)

    def _turned(self, states: torch.Tensor) -> torch.Tensor:
        places = states.shape[2]
        cos, sin = self.get_buffer("cos")[:places], self.get_buffer("sin")[:places]
        first, second = states.float().chunk(2, dim=-1)
        turned = torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
        return turned.to(states.dtype)


POSITION_ENCODINGS: dict[str, type[PositionEncoding]] = {"learned": PositionEncoding, "rope": Rope}
