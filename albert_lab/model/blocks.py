"""The blocks of a layer: attention and FFN, each with a residual and a LayerNorm; and the encodings
of positions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from albert_lab.model.shape import EncoderShape

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu": F.gelu,
    "relu": F.relu,
}


class PositionEncoding(nn.Module):
    """What tells the encoder the place of a token; one for all layers.

    Attributes:
        has_table: whether the embeddings add a learned vector for each place, as in ALBERT and
            BERT.
    """

    has_table = True

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()

    def rotate(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Query and key, both [batch, heads, sequence, head size], before their product."""
        return query, key


class Rope(PositionEncoding):
    """Query and key are turned by an angle that grows with their place (Su et al. 2021, arXiv
    2104.09864).
    """

    has_table = False

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__(shape)
        half = shape.hidden_size // shape.num_attention_heads // 2
        rates = 10_000.0 ** -(torch.arange(half) / half)
        # [place, half of a head]
        angles = torch.arange(shape.max_position_embeddings)[:, None] * rates
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """See PositionEncoding; the first half of a head and the second are the pairs."""
        return self._turned(query), self._turned(key)

    def _turned(self, states: Tensor) -> Tensor:
        places = states.shape[2]
        cos = self.get_buffer("cos")[:places]
        sin = self.get_buffer("sin")[:places]
        first, second = states.float().chunk(2, dim=-1)
        turned = torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
        return turned.to(states.dtype)


class LayerScale(nn.Module):
    """The scale of each unit [hidden] of what a block adds in one layer; 1 at first.

    So layers that share a block can still use it differently. Source: LayerScale (Touvron et al.
    2021, arXiv 2103.17239), which starts near 0 where layers share nothing.
    """

    # Differs from the paper: there nothing but its place tells a layer from others of its block.

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape.hidden_size))

    def forward(self, states: Tensor) -> Tensor:
        """States [batch, sequence, hidden], scaled."""
        return self.weight * states


UNSCALED = nn.Identity()


class Block(nn.Module, ABC):
    """A block of a layer: what compute() gives, with residual, dropout and LayerNorm around it."""

    compute: Callable[..., Tensor]

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.build(shape)
        self.layer_norm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
        self.dropout = nn.Dropout(shape.dropout)

    @abstractmethod
    def build(self, shape: EncoderShape) -> None:
        """Make the modules of the block. Their matrices are initialised later, all alike."""

    def forward(self, hidden_states: Tensor, *inputs: Any, scale: nn.Module = UNSCALED) -> Tensor:
        """Hidden states [batch, sequence, hidden] plus what the block computes of them and of the
        inputs, scaled (LayerScale); then the LayerNorm, as in ALBERT and BERT (modeling.py).
        """
        # Dropout after the FFN too, as released; for ALBERT, transformers creates this dropout but
        # never applies it.
        computed = scale(self.compute(hidden_states, *inputs))
        return self.layer_norm(hidden_states + self.dropout(computed))


class AttentionBlock(Block):
    """Multi-head self-attention (modeling.py, attention_ffn_block)."""

    def build(self, shape: EncoderShape) -> None:
        self.head_size = shape.hidden_size // shape.num_attention_heads
        # Three matrices instead of one, since LAMB uses the norm of each.
        self.query = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.key = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.value = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.output = nn.Linear(shape.hidden_size, shape.hidden_size)

    def compute(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None,
        positions: PositionEncoding,
    ) -> Tensor:
        """Attention over hidden states [batch, sequence, hidden], without residual, dropout and
        LayerNorm.

        Args:
            hidden_states: [batch, sequence, hidden].
            attention_mask: True where a token (third dimension) may attend to another one (fourth);
                it broadcasts to [batch, heads, sequence, sequence]; None: to all.
            positions: the position encoding of the encoder.
        """
        query, key, value = (
            self.split_heads(of(hidden_states)) for of in (self.query, self.key, self.value)
        )
        query, key = positions.rotate(query, key)
        context = attend(
            query, key, value, attention_mask, self.dropout.p if self.training else 0.0
        )
        return self.output(context.transpose(1, 2).flatten(2))

    def split_heads(self, states: Tensor) -> Tensor:
        """[batch, heads, sequence, head size] of [batch, sequence, hidden]."""
        return states.unflatten(-1, (-1, self.head_size)).transpose(1, 2)


class FfnBlock(Block):
    """Position-wise feed-forward network (modeling.py, attention_ffn_block)."""

    def build(self, shape: EncoderShape) -> None:
        self.intermediate = nn.Linear(shape.hidden_size, shape.intermediate_size)
        self.output = nn.Linear(shape.intermediate_size, shape.hidden_size)
        self.activation = ACTIVATIONS[shape.hidden_act]

    def compute(self, hidden_states: Tensor) -> Tensor:
        """The network on hidden states [batch, sequence, hidden], without residual, dropout and
        LayerNorm.
        """
        return self.output(self.activation(self.intermediate(hidden_states)))


ATTENTION_BLOCKS: dict[str, type[AttentionBlock]] = {"standard": AttentionBlock}
FFN_BLOCKS: dict[str, type[FfnBlock]] = {"standard": FfnBlock}
POSITION_ENCODINGS: dict[str, type[PositionEncoding]] = {"learned": PositionEncoding, "rope": Rope}


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
) -> Tensor:
    """Scaled dot-product attention of [batch, heads, sequence, head size] with a mask
    (AttentionBlock.compute).
    """
    if query.device.type != "cpu" or query.dtype is not torch.bfloat16:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    # On CPUs, the fused backward pass in bf16 is six times slower than in float32 at length 64, and
    # slower at 512 too.
    with torch.autocast("cpu", enabled=False):
        return attend(query.float(), key.float(), value.float(), mask, dropout)
