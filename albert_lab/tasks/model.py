"""The model to fine-tune: the encoder and pooler of a run (or random ones) with the head of a task."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from albert_lab.config.schema import RunConfig
from albert_lab.data.tokenizer.base import Tokenizer
from albert_lab.model.encoder import Encoder, initialize
from albert_lab.model.heads import Pooler, PretrainingModel
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.features import TaskBatch
from albert_lab.tasks.kind import TaskKind
from albert_lab.tasks.settings import PoolerStart
from albert_lab.training import checkpoint


@dataclass(frozen=True)
class InitialModel:
    """The start of a fine-tuning: a run's configuration and tokenizer, its weights (None: random), and the folder.

    Records are written below the folder. name identifies the start: records with another name are ignored.
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

    def loss(self, batch: TaskBatch) -> torch.Tensor:
        """Mean loss of a batch."""
        return self.head.loss(*self._encode(batch), batch)

    def scores(self, batch: TaskBatch) -> dict[str, torch.Tensor]:
        """The scores from which the kind makes predictions, [items, ...]."""
        return dict(self.head.scores(*self._encode(batch), batch))

    def _encode(self, batch: TaskBatch) -> tuple[torch.Tensor, torch.Tensor]:
        output = self.encoder(batch.input_ids, batch.token_type_ids, batch.mask_of_padding)
        return output.last_hidden_state, self.pooler(output.last_hidden_state)


def build_model(
    start: InitialModel, kind: TaskKind, dropout: float, seed: int, pooler: PoolerStart = "pretrained"
) -> TaskModel:
    """Builds a model to fine-tune: the encoder and pooler of a run (or random ones) and a random head.

    The pooler can be a new one, with random weights.

    Raises:
        MissingDataError, ConfigError: see checkpoint.load_weights.
    """
    shape = replace(EncoderShape.from_config(start.config), dropout=dropout)
    pretrained = PretrainingModel(shape, len(start.config.inter_sentence.labels), seed)
    if start.weights is not None:
        checkpoint.load_weights(start.weights, pretrained)
    head = kind.build_head(shape)
    generator = torch.Generator().manual_seed(seed)
    initialize(head, shape.initializer_range, generator)
    if pooler == "new":
        # Differs from the paper, which says nothing of the pooler, and the release, which keeps that of pre-training.
        initialize(pretrained.pooler, shape.initializer_range, generator)
    return TaskModel(pretrained.encoder, pretrained.pooler, head)
