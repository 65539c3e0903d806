"""What a kind of task is: its features, its head, and the way from scores to answers and their
official scores.

A kind is a module with a class `Kind`; task.py has their names.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

import numpy as np
from torch import nn

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.batches import Features
from albert_lab.tasks.task import KINDS, TaskConfig, TaskSettings

Outputs = Mapping[str, np.ndarray]  # a head's scores of every item, by name
NaProbs = Sequence[float] | None  # no-answer probabilities, if there may be no answer
Predictions = tuple[Sequence[Any], NaProbs]  # with the answer to each example: label, text or index


class Scored(NamedTuple):
    """The official scores in percent by name, the main ones first.

    shares has the score of each answer, from 0 to 1, by name of the score, of scores that are means
    over examples: not of correlations or GLUE's F1. threshold is that of no answer, if there is
    one.
    """

    values: dict[str, float]
    shares: dict[str, list[float]]
    threshold: float | None = None

    def share_of_each(self, names: Sequence[str]) -> list[float]:
        """The mean of the scores of these names for each example; empty if one has no shares."""
        columns = [self.shares.get(name, []) for name in names]
        return [sum(parts) / len(parts) for parts in zip(*columns, strict=True)]


class TaskKind(ABC):
    """One kind of task for one task: features, head, and the way from the head's scores to answers
    and their official scores.
    """

    def __init__(self, task: TaskConfig, settings: TaskSettings) -> None:
        self.task = task
        # The format is one of those that the kind reads, and what it reads of the settings is not
        # None.
        self.form = cast(Any, task.format)
        self.settings = cast(Any, settings)

    @abstractmethod
    def make_features(
        self, examples: Sequence[Any], tokenizer: Tokenizer, *, training: bool
    ) -> Features:
        """The sequences of examples for training or prediction."""

    @abstractmethod
    def build_head(self, shape: EncoderShape) -> nn.Module:
        """A head as heads.py has them, whose weights are not initialised yet."""

    @abstractmethod
    def chance_loss(self, features: Features) -> float:
        """The lowest possible loss of a model that ignores the example, in nats (for numbers, their
        variance).
        """

    @abstractmethod
    def predict(self, examples: Sequence[Any], features: Features, outputs: Outputs) -> Predictions:
        """The answer to each example."""

    @abstractmethod
    def constant(self, examples: Sequence[Any]) -> Sequence[Any]:
        """The best answers that ignore the example, by the labels of the scored examples; their
        score is the floor.
        """

    @abstractmethod
    def score(
        self, examples: Sequence[Any], answers: Sequence[Any], na_probs: NaProbs = None
    ) -> Scored:
        """The official scores of the answers to all examples."""


def load_kind(task: TaskConfig, settings: TaskSettings) -> TaskKind:
    """The kind of a task with these settings."""
    return import_module(KINDS[task.kind].module).Kind(task, settings)
