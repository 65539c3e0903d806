"""Factorised embeddings: word, token type and position at the embedding size, projected to the hidden size."""

import torch
from torch import nn

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
