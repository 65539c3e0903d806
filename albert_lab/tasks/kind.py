"""The interface of a kind of task; each kind is one module of this package with a class `Kind`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import torch

from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.examples import SpanExample
from albert_lab.tasks.features import Features, TaskBatch, TextEncoder
from albert_lab.tasks.score import evaluate
from albert_lab.tasks.settings import TaskSettings
from albert_lab.tasks.task import KINDS, TaskConfig

Scores = dict[str, np.ndarray]
UNLABELLED = -1


@dataclass(frozen=True)
class Predictions:
    """Answers by example id: label, text or index; also no-answer probabilities if questions may be unanswerable."""

    answers: Mapping[str, Any]
    na_probs: Mapping[str, float] | None = None


class Head(Protocol):
    """The module on top of the encoder: it returns a loss, and scores for predictions."""

    def loss(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        """Mean loss of a batch from hidden states [rows, sequence, hidden] and pooled output [rows, hidden]."""
        ...

    def scores(self, hidden_states: torch.Tensor, pooled: torch.Tensor, batch: TaskBatch) -> Mapping[str, torch.Tensor]:
        """The scores from which the kind makes predictions, [items, ...]."""
        ...


class TaskKind(Protocol):
    """One kind of task for one task: features, head, and the way from scores to predictions."""

    def __init__(self, task: TaskConfig, settings: TaskSettings) -> None: ...

    def make_features(self, examples: Sequence[Any], encoder: TextEncoder, *, training: bool) -> Features:
        """The sequences of examples for training or prediction; without a label, the target is -1 or NaN."""
        ...

    def build_head(self, shape: EncoderShape) -> torch.nn.Module:
        """A head whose weights are not initialised yet."""
        ...

    def chance_loss(self, features: Features) -> float:
        """The lowest possible loss of a model that ignores the example."""
        ...

    def collect(self, examples: Sequence[Any], features: Features, outputs: Mapping[str, np.ndarray]) -> Scores:
        """Scores of each example, in the form that is saved and averaged, from the scores of each item."""
        ...

    def average(self, members: Sequence[Scores]) -> Scores:
        """Scores of an ensemble from the scores of its members on the same examples."""
        ...

    def predict(self, examples: Sequence[Any], scores: Scores) -> Predictions:
        """The answer to each example."""
        ...

    def log_likelihoods(self, examples: Sequence[Any], scores: Scores) -> np.ndarray | None:
        """Log-probabilities of the right answers [examples], in nats; None if answers have no probabilities.

        NaN if the right answer is unknown or cannot be given.
        """
        ...

    def constant(self, train: Sequence[Any], examples: Sequence[Any]) -> Predictions:
        """The best answers that ignore the example, by the labels of the scored examples; their score is the floor."""
        ...


def load_kind(task: TaskConfig, settings: TaskSettings) -> TaskKind:
    """The kind of a task."""
    return import_module(KINDS[task.kind].module).Kind(task, settings)


class OfProbabilities:
    """The part of kinds whose heads return `values`: one probability per answer [items, answers], or a number."""

    def collect(self, examples: Sequence[Any], features: Features, outputs: Mapping[str, np.ndarray]) -> Scores:
        """values [examples, answers], as returned by the head."""
        return {"ids": np.array([example.id for example in examples]), "values": outputs["values"]}

    def average(self, members: Sequence[Scores]) -> Scores:
        """The mean of the values."""
        return members[0] | {"values": np.mean([member["values"] for member in members], axis=0)}


def log_of_right(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities [examples, answers] at the labels [examples]; NaN at UNLABELLED."""
    right = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    logs = np.log(np.maximum(right, np.finfo(np.float32).tiny))
    return np.where(labels == UNLABELLED, np.nan, logs)


@dataclass(frozen=True)
class Answers:
    """Final answers by example id, their official scores, and the no-answer threshold that was used, if any."""

    answers: Mapping[str, Any]
    na_probs: Mapping[str, float] | None
    scores: dict[str, float]
    threshold: float | None


def decide(predictions: Predictions, threshold: float | None) -> Answers:
    """Final answers without scores; above the threshold, questions that may be unanswerable get no answer."""
    answers, na_probs = predictions.answers, predictions.na_probs
    if na_probs is not None:
        assert threshold is not None
        answers = {id: "" if na_probs[id] > threshold else text for id, text in answers.items()}
    return Answers(answers, na_probs, {}, threshold)


def judge(
    task: TaskConfig,
    examples: Sequence[Any],
    predictions: Predictions,
    say: Callable[[str], None],
    threshold: float | None = None,
) -> Answers:
    """Final answers and scores.

    Above the threshold, a question that may be unanswerable gets no answer. None: the threshold that maximizes the F1
    of these examples (the release chooses it on dev).
    """
    answers, na_probs = predictions.answers, predictions.na_probs
    if na_probs is not None and threshold is None:
        threshold = evaluate(task, examples, answers, say, na_probs=na_probs)["best_f1_thresh"]
    outcome = decide(predictions, threshold)
    return replace(outcome, scores=evaluate(task, examples, outcome.answers, say))


def has_gold(examples: Sequence[Any]) -> bool:
    """Whether the examples can be scored; official test files have no labels."""
    return any(e.answers or e.is_impossible if isinstance(e, SpanExample) else e.label is not None for e in examples)
