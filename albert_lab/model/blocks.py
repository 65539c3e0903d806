"""The blocks of a layer: attention and FFN, each with a residual and a LayerNorm, whose places are exchangeable."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from albert_lab.model.positions import PositionEncoding
from albert_lab.model.shape import EncoderShape
from albert_lab.registry import Registry

Activation = Callable[[torch.Tensor], torch.Tensor]

ACTIVATIONS: Registry[Activation] = Registry(
    "activation", {"gelu_new": partial(F.gelu, approximate="tanh"), "gelu": F.gelu, "relu": F.relu}
)


class NormPlacement(nn.Module):
    """The place of the LayerNorm of a block: after the residual, as in ALBERT and BERT (modeling.py).

    Attributes:
        norms_output: whether the encoder has one more LayerNorm, on the output of its last layer.
    """

    norms_output = False

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()

    def forward(
        self,
        hidden_states: torch.Tensor,
        compute: Callable[[torch.Tensor], torch.Tensor],
        layer_norm: nn.Module,
        dropout: nn.Module,
    ) -> torch.Tensor:
        """The output [batch, sequence, hidden] of a block.

        Args:
            hidden_states: the input of the block [batch, sequence, hidden].
            compute: attention or the FFN, without residual, dropout and LayerNorm.
            layer_norm: the LayerNorm of the block.
            dropout: the dropout of the block.
        """
        # Dropout after the FFN too, as released; for ALBERT, transformers creates this dropout but never applies it.
        return layer_norm(hidden_states + dropout(compute(hidden_states)))


NORM_PLACEMENTS: Registry[type[NormPlacement]] = Registry("norm_placement", {"post": NormPlacement})


class Block(nn.Module, ABC):
    """A block of a layer: what build() makes and compute() computes, with residual, dropout and LayerNorm around it."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.build(shape)
        self.layer_norm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
        self.dropout = nn.Dropout(shape.dropout)
        self.placement = NORM_PLACEMENTS[shape.norm_placement](shape)

    @abstractmethod
    def build(self, shape: EncoderShape) -> None:
        """Make the modules of the block. Their matrices are initialised later, all alike."""


class AttentionBlock(Block):
    """Multi-head self-attention (modeling.py, attention_ffn_block)."""

    def build(self, shape: EncoderShape) -> None:
        self.head_size = shape.hidden_size // shape.num_attention_heads
        # Three matrices instead of one, since LAMB uses the norm of each.
        self.query = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.key = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.value = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.output = nn.Linear(shape.hidden_size, shape.hidden_size)

    def forward(
        self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None, positions: PositionEncoding
    ) -> torch.Tensor:
        """Hidden states [batch, sequence, hidden] after attention; see compute()."""
        return self.placement(
            hidden_states,
            lambda states: self.compute(states, attention_mask, positions),
            self.layer_norm,
            self.dropout,
        )

    def compute(
        self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None, positions: PositionEncoding
    ) -> torch.Tensor:
        """Attention over hidden states [batch, sequence, hidden], without residual, dropout and LayerNorm.

        Args:
            hidden_states: [batch, sequence, hidden].
            attention_mask: True at real tokens [batch, 1, 1, sequence], or a bias of the scores that broadcasts to
                [batch, heads, sequence, sequence]; None: no padding.
            positions: the position encoding of the encoder.
        """
        query, key = positions.rotate(
            self.split_heads(self.query(hidden_states)), self.split_heads(self.key(hidden_states))
        )
        value = self.split_heads(self.value(hidden_states))
        context = attend(query, key, value, attention_mask, self.dropout.p if self.training else 0.0)
        return self.output(context.transpose(1, 2).flatten(2))

    def split_heads(self, states: torch.Tensor) -> torch.Tensor:
        """[batch, heads, sequence, head size] of [batch, sequence, hidden]."""
        return states.unflatten(-1, (-1, self.head_size)).transpose(1, 2)


class FfnBlock(Block):
    """Position-wise feed-forward network (modeling.py, attention_ffn_block)."""

    def build(self, shape: EncoderShape) -> None:
        self.intermediate = nn.Linear(shape.hidden_size, shape.intermediate_size)
        self.output = nn.Linear(shape.intermediate_size, shape.hidden_size)
        self.activation = ACTIVATIONS[shape.hidden_act]

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Hidden states [batch, sequence, hidden] after the feed-forward network."""
        return self.placement(hidden_states, self.compute, self.layer_norm, self.dropout)

    def compute(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """The network on hidden states [batch, sequence, hidden], without residual, dropout and LayerNorm."""
        return self.output(self.activation(self.intermediate(hidden_states)))


ATTENTION_BLOCKS: Registry[type[AttentionBlock]] = Registry("attention_block", {"standard": AttentionBlock})
FFN_BLOCKS: Registry[type[FfnBlock]] = Registry("ffn_block", {"standard": FfnBlock})


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, dropout: float
) -> torch.Tensor:
    """Scaled dot-product attention of [batch, heads, sequence, head size] with a mask or bias (AttentionBlock)."""
    if query.device.type != "cpu" or query.dtype is not torch.bfloat16:
        if mask is not None and mask.is_floating_point():
            mask = mask.to(query.dtype)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    # On CPUs, the fused backward pass in bf16 is six times slower than in float32 at length 64, and slower at 512 too.
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(
            query.float(), key.float(), value.float(), attn_mask=mask, dropout_p=dropout
        )


def activation(name: str) -> Callable[[Activation], Activation]:
    """Register a function of a tensor, element by element, for `model.hidden_act=NAME`."""
    return ACTIVATIONS.decorator(name)


def norm_placement(name: str) -> Callable[[type[NormPlacement]], type[NormPlacement]]:
    """Register a subclass of NormPlacement for `norm_placement=NAME`."""
    return NORM_PLACEMENTS.decorator(name)


def attention_block(name: str) -> Callable[[type[AttentionBlock]], type[AttentionBlock]]:
    """Register a subclass of AttentionBlock for `attention_block=NAME`."""
    return ATTENTION_BLOCKS.decorator(name)


def ffn_block(name: str) -> Callable[[type[FfnBlock]], type[FfnBlock]]:
    """Register a subclass of FfnBlock for `ffn_block=NAME`."""
    return FFN_BLOCKS.decorator(name)
