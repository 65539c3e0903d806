"""The encoder: factorised embeddings, then layers that share attention and FFN blocks."""

from typing import NamedTuple

import torch
from torch import nn

from albert_lab.model.blocks import ATTENTION_BLOCKS, FFN_BLOCKS
from albert_lab.model.positions import POSITION_ENCODINGS
from albert_lab.model.shape import EncoderShape


class Embeddings(nn.Module):
    """Maps token ids to the input of the first layer (section 3.1, factorized embedding parameterization)."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(shape.vocab_size, shape.embedding_size)
        self.token_type_embeddings = nn.Embedding(shape.type_vocab_size, shape.embedding_size)
        has_table = POSITION_ENCODINGS[shape.position_encoding].has_table
        positions = nn.Embedding(shape.max_position_embeddings, shape.embedding_size) if has_table else None
        self.position_embeddings = positions
        self.layer_norm = nn.LayerNorm(shape.embedding_size, eps=shape.layer_norm_eps)
        self.dropout = nn.Dropout(shape.dropout)
        self.projection = nn.Linear(shape.embedding_size, shape.hidden_size) if shape.projection else nn.Identity()

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor) -> torch.Tensor:
        """Embeddings [batch, sequence, hidden] of input_ids and token_type_ids, both [batch, sequence]."""
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        if self.position_embeddings is not None:
            embeddings = embeddings + self.position_embeddings.weight[: input_ids.shape[1]]
        projected = self.projection(self.dropout(self.layer_norm(embeddings)))
        # With autocast, the residual stream keeps the precision of the weights, with and without a projection.
        return projected.to(embeddings.dtype)


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
        attention, ffn = ATTENTION_BLOCKS[shape.attention_block], FFN_BLOCKS[shape.ffn_block]
        self.attention_blocks = nn.ModuleList(attention(shape) for _ in sorted(set(shape.attention_blocks)))
        self.ffn_blocks = nn.ModuleList(ffn(shape) for _ in sorted(set(shape.ffn_blocks)))
        self.positions = POSITION_ENCODINGS[shape.position_encoding](shape)
        # With a LayerNorm before each block, nothing else would normalise what the heads read.
        is_pre = shape.norm_placement == "pre"
        self.output_norm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps) if is_pre else nn.Identity()

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
        if self.shape.attention_scope == "within-segments":
            same = (token_type_ids[:, :, None] == token_type_ids[:, None, :])[:, None]
            mask = same if mask is None else same & mask
        hidden_states = self.embeddings(input_ids, token_type_ids)
        kept = [hidden_states] if output_hidden_states else []
        for attention, ffn in self.layers:
            hidden_states = self.attention_blocks[attention](hidden_states, mask, self.positions)
            hidden_states = self.ffn_blocks[ffn](hidden_states)
            if output_hidden_states:
                kept.append(hidden_states)
        return EncoderOutput(self.output_norm(hidden_states), tuple(kept) if output_hidden_states else None)


def initialize(module: nn.Module, std: float, generator: torch.Generator) -> None:
    """Draws every matrix from a normal distribution truncated at two standard deviations, and zeroes every bias.

    LayerNorm weights stay 1. Source: modeling.py, create_initializer.
    """
    for name, parameter in module.named_parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=std, a=-2 * std, b=2 * std, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
