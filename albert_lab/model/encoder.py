"""The encoder (factorised embeddings, then layers that share attention and FFN blocks), and its
pre-training heads.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from albert_lab.config.schema import RunConfig
from albert_lab.model.blocks import (
    ACTIVATIONS,
    ATTENTION_BLOCKS,
    FFN_BLOCKS,
    POSITION_ENCODINGS,
    LayerScale,
)
from albert_lab.model.shape import EncoderShape


class Embeddings(nn.Module):
    """Maps token ids to the input of the first layer (section 3.1, factorized embedding
    parameterization).
    """

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(shape.vocab_size, shape.embedding_size)
        self.token_type_embeddings = nn.Embedding(shape.type_vocab_size, shape.embedding_size)
        has_table = POSITION_ENCODINGS[shape.position_encoding].has_table
        places = shape.max_position_embeddings
        self.position_embeddings = nn.Embedding(places, shape.embedding_size) if has_table else None
        self.layer_norm = nn.LayerNorm(shape.embedding_size, eps=shape.layer_norm_eps)
        self.dropout = nn.Dropout(shape.dropout)
        self.projection = (
            nn.Linear(shape.embedding_size, shape.hidden_size)
            if shape.projection
            else nn.Identity()
        )

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        """Embeddings [batch, sequence, hidden] of input_ids and token_type_ids, both [batch,
        sequence].
        """
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        if self.position_embeddings is not None:
            embeddings = embeddings + self.position_embeddings.weight[: input_ids.shape[1]]
        projected = self.projection(self.dropout(self.layer_norm(embeddings)))
        # With autocast, the residual stream keeps the precision of the weights, with and without a
        # projection.
        return projected.to(embeddings.dtype)


class EncoderOutput(NamedTuple):
    """The last hidden state [batch, sequence, hidden]; if requested, the input of layer 1 and each
    layer's output, else none.
    """

    last_hidden_state: Tensor
    hidden_states: list[Tensor]


class Encoder(nn.Module):
    """ALBERT, BERT and variants: each layer uses one block of a list of attention blocks and one of
    FFN blocks.
    """

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.layers = list(zip(shape.attention_blocks, shape.ffn_blocks, strict=True))
        self.embeddings = Embeddings(shape)
        attention = ATTENTION_BLOCKS[shape.attention_block]
        ffn = FFN_BLOCKS[shape.ffn_block]
        self.attention_blocks = nn.ModuleList(attention(shape) for _ in set(shape.attention_blocks))
        self.ffn_blocks = nn.ModuleList(ffn(shape) for _ in set(shape.ffn_blocks))
        scale = LayerScale if shape.layer_scales == "learned" else nn.Identity
        self.attention_scales = nn.ModuleList(scale(shape) for _ in self.layers)
        self.ffn_scales = nn.ModuleList(scale(shape) for _ in self.layers)
        self.positions = POSITION_ENCODINGS[shape.position_encoding](shape)

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor | None,
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
        for layer, (attention, ffn) in enumerate(self.layers):
            hidden_states = self.attention_blocks[attention](
                hidden_states, mask, self.positions, scale=self.attention_scales[layer]
            )
            hidden_states = self.ffn_blocks[ffn](hidden_states, scale=self.ffn_scales[layer])
            if output_hidden_states:
                kept.append(hidden_states)
        return EncoderOutput(hidden_states, kept)


def initialize(module: nn.Module, std: float, generator: torch.Generator) -> None:
    """Draws every matrix from a normal distribution truncated at two standard deviations, and
    zeroes every bias.

    LayerNorm weights stay 1. Source: modeling.py, create_initializer.
    """
    for name, parameter in module.named_parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=std, a=-2 * std, b=2 * std, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


class MlmHead(nn.Module):
    """Scores the vocabulary at masked positions (run_pretraining.py, get_masked_lm_output)."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.hidden_size, shape.embedding_size)
        self.activation = ACTIVATIONS[shape.hidden_act]
        self.layer_norm = nn.LayerNorm(shape.embedding_size, eps=shape.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(shape.vocab_size))

    def forward(self, hidden_states: Tensor, word_embeddings: Tensor) -> Tensor:
        """Logits [masked, vocab] of hidden states [masked, hidden], decoded by word_embeddings
        [vocab, embedding].
        """
        transformed = self.layer_norm(self.activation(self.dense(hidden_states)))
        return F.linear(transformed, word_embeddings, self.bias)


class Pooler(nn.Module):
    """A tanh layer on the [CLS] token of a sequence (modeling.py, AlbertModel)."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.hidden_size, shape.hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Pooled output [batch, hidden] of hidden states [batch, sequence, hidden]."""
        return torch.tanh(self.dense(hidden_states[:, 0]))


class PretrainingOutput(NamedTuple):
    """Logits [masked, vocab], logits [batch, labels] (None without an inter-sentence loss), pooled
    [batch, hidden].
    """

    mlm_logits: Tensor
    pair_logits: Tensor | None
    pooled: Tensor


def likeliest(logits: Tensor) -> Tensor:
    """The index [rows] of the largest of the logits [rows, labels], the first if several are equal;
    no gradients.
    """
    # argmax gives the same indices, but takes three to ten times as long on CPUs.
    return logits.detach().max(-1).indices


class PretrainingModel(nn.Module):
    """The encoder with its pre-training heads, initialised from a seed."""

    def __init__(self, shape: EncoderShape, num_pair_labels: int, seed: int) -> None:
        super().__init__()
        self.encoder = Encoder(shape)
        self.pooler = Pooler(shape)
        self.mlm_head = MlmHead(shape)
        # Without dropout, as released. Created last, so that the other weights do not depend on the
        # labels.
        self.pair_head = nn.Linear(shape.hidden_size, num_pair_labels) if num_pair_labels else None
        initialize(self, shape.initializer_range, torch.Generator().manual_seed(seed))

    @classmethod
    def from_config(cls, config: RunConfig) -> "PretrainingModel":
        """The untrained model of a run."""
        return cls(EncoderShape.from_config(config), len(config.inter_sentence.labels), config.seed)

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor | None,
        masked_positions: Tensor,
    ) -> PretrainingOutput:
        """Logits of both losses for a batch.

        Args:
            input_ids: token ids [batch, sequence], some of them masked.
            token_type_ids: segment of each token [batch, sequence].
            attention_mask: True at real tokens [batch, sequence]; every sequence has at least one.
                None: no padding.
            masked_positions: positions to predict [masked], as indices into the flattened batch.
        """
        hidden_states = self.encoder(input_ids, token_type_ids, attention_mask).last_hidden_state
        masked = hidden_states.flatten(0, 1).index_select(0, masked_positions)
        pooled = self.pooler(hidden_states)
        return PretrainingOutput(
            mlm_logits=self.mlm_head(masked, self.encoder.embeddings.word_embeddings.weight),
            pair_logits=None if self.pair_head is None else self.pair_head(pooled),
            pooled=pooled,
        )
