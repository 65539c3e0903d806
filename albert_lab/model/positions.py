"""The position encoding of an encoder: a learned vector for each place by default, in the embeddings."""

from collections.abc import Callable

import torch
from torch import nn

from albert_lab.model.shape import EncoderShape
from albert_lab.registry import Registry


class PositionEncoding(nn.Module):
    """What tells the encoder the place of a token; one for all layers. Subclasses override what they need.

    Attributes:
        has_table: whether the embeddings add a learned vector for each place, as in ALBERT and BERT.
    """

    has_table = True

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()

    def rotate(self, query: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Query and key, both [batch, heads, sequence, head size], before their product."""
        return query, key

    def bias(self, token_type_ids: torch.Tensor) -> torch.Tensor | None:
        """A bias of the attention scores that broadcasts to [batch, heads, sequence, sequence]; None: no bias.

        Args:
            token_type_ids: segment of each token [batch, sequence], 0 at padding.
        """
        return None


POSITION_ENCODINGS: Registry[type[PositionEncoding]] = Registry("position_encoding", {"learned": PositionEncoding})


def position_encoding(name: str) -> Callable[[type[PositionEncoding]], type[PositionEncoding]]:
    """Register a subclass of PositionEncoding for `position_encoding=NAME`."""
    return POSITION_ENCODINGS.decorator(name)
