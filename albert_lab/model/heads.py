"""The pre-training heads of the encoder: masked language modelling, pooling and the inter-sentence loss."""

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from albert_lab.config.schema import RunConfig
from albert_lab.model.blocks import ACTIVATIONS
from albert_lab.model.encoder import Encoder, initialize
from albert_lab.model.shape import EncoderShape


class MlmHead(nn.Module):
    """Scores the vocabulary at masked positions (run_pretraining.py, get_masked_lm_output)."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.hidden_size, shape.embedding_size)
        self.activation = ACTIVATIONS[shape.hidden_act]
        self.layer_norm = nn.LayerNorm(shape.embedding_size, eps=shape.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(shape.vocab_size))

    def forward(self, hidden_states: torch.Tensor, word_embeddings: torch.Tensor) -> torch.Tensor:
        """Logits [masked, vocab] of hidden states [masked, hidden], decoded by word_embeddings [vocab, embedding]."""
        transformed = self.layer_norm(self.activation(self.dense(hidden_states)))
        return F.linear(transformed, word_embeddings, self.bias)


class Pooler(nn.Module):
    """A tanh layer on the [CLS] token of a sequence (modeling.py, AlbertModel)."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.hidden_size, shape.hidden_size)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Pooled output [batch, hidden] of hidden states [batch, sequence, hidden]."""
        return torch.tanh(self.dense(hidden_states[:, 0]))


class PretrainingOutput(NamedTuple):
    """Logits [masked, vocab], logits [batch, labels] (None without an inter-sentence loss), pooled [batch, hidden]."""

    mlm_logits: torch.Tensor
    pair_logits: torch.Tensor | None
    pooled: torch.Tensor


def likeliest(logits: torch.Tensor) -> torch.Tensor:
    """The index [rows] of the largest of the logits [rows, labels], the first if several are equal; no gradients."""
    # argmax gives the same indices, but takes three to ten times as long on CPUs.
    return logits.detach().max(-1).indices


class PretrainingModel(nn.Module):
    """The encoder with its pre-training heads, initialised from a seed."""

    def __init__(self, shape: EncoderShape, num_pair_labels: int, seed: int) -> None:
        super().__init__()
        self.encoder = Encoder(shape)
        self.pooler = Pooler(shape)
        self.mlm_head = MlmHead(shape)
        # Without dropout, as released. Created last, so that the other weights do not depend on the labels.
        self.pair_head = nn.Linear(shape.hidden_size, num_pair_labels) if num_pair_labels else None
        initialize(self, shape.initializer_range, torch.Generator().manual_seed(seed))

    @classmethod
    def from_config(cls, config: RunConfig) -> "PretrainingModel":
        """The untrained model of a run."""
        return cls(EncoderShape.from_config(config), len(config.inter_sentence.labels), config.seed)

    def forward(
        self,
        input_ids: torch.Tensor,
        token_type_ids: torch.Tensor,
        attention_mask: torch.Tensor | None,
        masked_positions: torch.Tensor,
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
