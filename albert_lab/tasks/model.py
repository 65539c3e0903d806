"""The model that is fine-tuned: the encoder and pooler of a run, or random ones, with the head of a
task.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.model.encoder import Encoder, Pooler, PretrainingModel, initialize
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.batches import TaskBatch
from albert_lab.tasks.kind import TaskKind
from albert_lab.training import checkpoint


class InitialModel(NamedTuple):
    """The start of a fine-tuning: a run's configuration and tokenizer, its weights (None: random),
    and the folder.

    Records are written below the folder. name identifies the start: records with another name are
    ignored.
    """

    name: str
    config: RunConfig
    tokenizer: Tokenizer
    weights: Path | None
    folder: Path


class TaskModel(nn.Module):
    """The encoder and pooler of pre-training with the head of a task."""

    def __init__(self, encoder: Encoder, pooler: Pooler, head: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooler = pooler
        self.head = head

    def forward(self, batch: TaskBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """What the head reads: hidden states [rows, sequence, hidden] and pooled output [rows,
        hidden].
        """
        mask = batch.attention_mask if batch.is_masked else None
        hidden_states = self.encoder(batch.input_ids, batch.token_type_ids, mask).last_hidden_state
        return hidden_states, self.pooler(hidden_states)


def build_model(start: InitialModel, kind: TaskKind, seed: int) -> TaskModel:
    """Builds a model to fine-tune: the encoder and pooler of a run (or random ones) and a random
    head.

    By the settings of the kind, the pooler is a new one, with random weights.

    Raises:
        MissingDataError, ConfigError: see checkpoint.load_weights.
    """
    shape = replace(EncoderShape.from_config(start.config), dropout=kind.settings.dropout)
    pretrained = PretrainingModel(shape, len(start.config.inter_sentence.labels), seed)
    if start.weights is not None:
        checkpoint.load_weights(start.weights, pretrained)
    head = kind.build_head(shape)
    generator = torch.Generator().manual_seed(seed)
    initialize(head, shape.initializer_range, generator)
    if kind.settings.pooler == "new":
        # Differs from the paper, which says nothing of the pooler, and the release, which keeps
        # that of pre-training.
        initialize(pretrained.pooler, shape.initializer_range, generator)
    return TaskModel(pretrained.encoder, pretrained.pooler, head)
