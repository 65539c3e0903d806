"""What a kind of task is; each kind is one module of this package with a class `Kind`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch

from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.features import Features, TextEncoder
from albert_lab.tasks.settings import TaskSettings
from albert_lab.tasks.task import KINDS, TaskConfig

Scores = dict[str, np.ndarray]


class Predictions(NamedTuple):
    """Answers by example id: label, text or index; also no-answer probabilities if questions may be unanswerable."""

    answers: Mapping[str, Any]
    na_probs: Mapping[str, float] | None = None


class TaskKind:
    """One kind of task for one task: features, head, and the way from scores to predictions.

    collect() and average() are those of heads whose scores are `values`: one probability per answer [items, answers],
    or a number.
    """

    def __init__(self, task: TaskConfig, settings: TaskSettings) -> None:
        self.task = task
        self.settings = settings

    def make_features(self, examples: Sequence[Any], encoder: TextEncoder, *, training: bool) -> Features:
        """The sequences of examples for training or prediction."""
        raise NotImplementedError

    def build_head(self, shape: EncoderShape) -> torch.nn.Module:
        """A head whose weights are not initialised yet.

        Its loss(hidden_states, pooled, batch) is the mean loss of a batch, and its scores(hidden_states, pooled, batch)
        a dict of arrays [items, ...], from hidden states [rows, sequence, hidden] and pooled output [rows, hidden].
        """
        raise NotImplementedError

    def chance_loss(self, features: Features) -> float:
        """The lowest possible loss of a model that ignores the example."""
        raise NotImplementedError

    def predict(self, examples: Sequence[Any], scores: Scores) -> Predictions:
        """The answer to each example."""
        raise NotImplementedError

    def log_likelihoods(self, examples: Sequence[Any], scores: Scores) -> np.ndarray | None:
        """Log-probabilities of the right answers [examples], in nats; None if answers have no probabilities.

        NaN if the right answer cannot be given.
        """
        raise NotImplementedError

    def constant(self, examples: Sequence[Any]) -> Predictions:
        """The best answers that ignore the example, by the labels of the scored examples; their score is the floor."""
        raise NotImplementedError

    def collect(self, examples: Sequence[Any], features: Features, outputs: Mapping[str, np.ndarray]) -> Scores:
        """Scores of each example, in the form that is saved and averaged, from the scores of each item."""
        return {"ids": np.array([example.id for example in examples]), "values": outputs["values"]}

    def average(self, members: Sequence[Scores]) -> Scores:
        """Scores of an ensemble from the scores of its members on the same examples."""
        return members[0] | {"values": np.mean([member["values"] for member in members], axis=0)}


def log_of_right(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities [examples, answers] at the labels [examples]."""
    right = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    return np.log(np.maximum(right, np.finfo(np.float32).tiny))


def load_kind(task: TaskConfig, settings: TaskSettings) -> TaskKind:
    """The kind of a task with these settings."""
    return import_module(KINDS[task.kind].module).Kind(task, settings)
