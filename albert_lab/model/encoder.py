"""The encoder: attention and FFN blocks, each with a LayerNorm, shared among the layers."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from albert_lab.model.embeddings import Embeddings
from albert_lab.model.shape import EncoderShape

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu": F.gelu,
    "relu": F.relu,
}


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, dropout: float
) -> torch.Tensor:
    """Scaled dot-product attention of [batch, heads, sequence, head size] with the mask [batch, 1, 1, sequence]."""
    if query.device.type != "cpu" or query.dtype is not torch.bfloat16:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    # On CPUs, the fused backward pass in bf16 is six times slower than in float32 at length 64, and slower at 512 too.
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(
            query.float(), key.float(), value.float(), attn_mask=mask, dropout_p=dropout
        )


class AttentionBlock(nn.Module):
    """Multi-head self-attention, residual and LayerNorm (modeling.py, attention_ffn_block)."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.head_size = shape.hidden_size // shape.num_attention_heads
        # Three matrices instead of one, since LAMB uses the norm of each.
        self.query = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.key = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.value = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.output = nn.Linear(shape.hidden_size, shape.hidden_size)
        self.layer_norm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
        """Hidden states [batch, sequence, hidden] after attention with the mask [batch, 1, 1, sequence]."""
        context = attend(
            self._split_heads(self.query(hidden_states)),
            self._split_heads(self.key(hidden_states)),
            self._split_heads(self.value(hidden_states)),
            attention_mask,
            self.dropout.p if self.training else 0.0,
        )
        output = self.output(context.transpose(1, 2).flatten(2))
        return self.layer_norm(hidden_states + self.dropout(output))

    def _split_heads(self, states: torch.Tensor) -> torch.Tensor:
        return states.unflatten(-1, (-1, self.head_size)).transpose(1, 2)


class FfnBlock(nn.Module):
    """Position-wise feed-forward network, residual and LayerNorm (modeling.py, attention_ffn_block)."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.intermediate = nn.Linear(shape.hidden_size, shape.intermediate_size)
        self.output = nn.Linear(shape.intermediate_size, shape.hidden_size)
        self.layer_norm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
        self.dropout = nn.Dropout(shape.dropout)
        self.activation = ACTIVATIONS[shape.hidden_act]

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Hidden states [batch, sequence, hidden] after the feed-forward network."""
        output = self.output(self.activation(self.intermediate(hidden_states)))
        # Dropout here too, as released; for ALBERT, transformers creates this dropout but never applies it.
        return self.layer_norm(hidden_states + self.dropout(output))


class EncoderOutput(NamedTuple):
    """The last hidden state [batch, sequence, hidden]; if requested, the input of layer 1 and each layer's output."""

    last_hidden_state: torch.Tensor
    hidden_states: tuple[torch.Tensor, ...] | None


class Encoder(nn.Module):
    """ALBERT, BERT and variants: each layer uses one block of a list of attention blocks and one of FFN blocks."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.layers = list(zip(shape.attention_blocks, shape.ffn_blocks, strict=True))
        self.embeddings = Embeddings(shape)
        self.attention_blocks = nn.ModuleList(AttentionBlock(shape) for _ in sorted(set(shape.attention_blocks)))
        self.ffn_blocks = nn.ModuleList(FfnBlock(shape) for _ in sorted(set(shape.ffn_blocks)))

    def forward(
        self,
        input_ids: torch.Tensor,
        token_type_ids: torch.Tensor,
        attention_mask: torch.Tensor | None,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """Hidden states of a batch.

        Args:
            input_ids: token ids [batch, sequence].
            token_type_ids: segment of each token [batch, sequence].
            attention_mask: True at real tokens [batch, sequence]; every sequence has at least one.
                None: no padding.
            output_hidden_states: whether to keep every layer's output.
        """
        mask = None if attention_mask is None else attention_mask[:, None, None, :]
        hidden_states = self.embeddings(input_ids, token_type_ids)
        kept = [hidden_states] if output_hidden_states else []
        for attention, ffn in self.layers:
            hidden_states = self.attention_blocks[attention](hidden_states, mask)
            hidden_states = self.ffn_blocks[ffn](hidden_states)
            if output_hidden_states:
                kept.append(hidden_states)
        return EncoderOutput(hidden_states, tuple(kept) if output_hidden_states else None)


def initialize(module: nn.Module, std: float, generator: torch.Generator) -> None:
    """Draws every matrix from a normal distribution truncated at two standard deviations, and zeroes every bias.

    LayerNorm weights stay 1. Source: modeling.py, create_initializer.
    """
    for name, parameter in module.named_parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=std, a=-2 * std, b=2 * std, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
