"""Classification of or regression on one or two texts: the kind of the GLUE tasks."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from albert_lab.model.shape import EncoderShape
from albert_lab.tasks.examples import TextExample
from albert_lab.tasks.features import Features, TextEncoder, cut_pair
from albert_lab.tasks.formats import GlueFormat
from albert_lab.tasks.model import PooledHead, Predictions, Scores, TaskKind, log_of_right
from albert_lab.tasks.settings import TaskSettings
from albert_lab.tasks.task import TaskConfig


class Kind(TaskKind):
    """Classification, or regression if the task's format has no labels."""

    def __init__(self, task: TaskConfig, settings: TaskSettings) -> None:
        super().__init__(task, settings)
        assert isinstance(task.format, GlueFormat)
        self.labels = task.format.labels

    def make_features(self, examples: Sequence[TextExample], encoder: TextEncoder, *, training: bool) -> Features:
        """One row per example: `[CLS] a [SEP] b [SEP]`; the longer of two texts is truncated first."""
        length = self.settings.max_sequence_length
        firsts = encoder.encode([example.text_a for example in examples])
        seconds = encoder.encode([example.text_b or "" for example in examples])
        rows, cut = [], 0
        for example, first, second in zip(examples, firsts, seconds, strict=True):
            is_pair = example.text_b is not None
            room = length - (3 if is_pair else 2)
            cut += len(first) + len(second) > room
            kept = cut_pair(first, second, room)
            rows.append(encoder.join(kept[0], kept[1] if is_pair else None))
        return Features(
            input_ids=[ids for ids, _ in rows],
            first_lengths=[first for _, first in rows],
            targets={"labels": self._targets(examples)},
            counts={"cut": cut},
            pad_id=encoder.pad_id,
        )

    def _targets(self, examples: Sequence[TextExample]) -> np.ndarray:
        if self.labels is None:
            return np.array([example.label for example in examples], dtype=np.float32)
        number = {label: index for index, label in enumerate(self.labels)}
        return np.array([number[str(example.label)] for example in examples], dtype=np.int64)

    def build_head(self, shape: EncoderShape) -> PooledHead:
        """A head with one output per label, or a single output for regression."""
        return PooledHead(shape.hidden_size, len(self.labels or "1"), self.settings.classifier_dropout)

    def chance_loss(self, features: Features) -> float:
        """The entropy of the labels, in nats, or the variance of the numbers."""
        labels = features.targets["labels"]
        if self.labels is None:
            return float(labels.var())
        shares = np.bincount(labels) / len(labels)
        return float(-sum(share * math.log(share) for share in shares if share))

    def predict(self, examples: Sequence[TextExample], scores: Scores) -> Predictions:
        """The most probable label, or the number."""
        values, labels = scores["values"], self.labels
        answers = values[:, 0].tolist() if labels is None else [labels[index] for index in values.argmax(axis=1)]
        return Predictions(dict(zip((example.id for example in examples), answers, strict=True)))

    def log_likelihoods(self, examples: Sequence[TextExample], scores: Scores) -> np.ndarray | None:
        """Log-probabilities of the true labels [examples]; None for numbers."""
        return None if self.labels is None else log_of_right(scores["values"], self._targets(examples))

    def constant(self, examples: Sequence[TextExample]) -> Predictions:
        """The most frequent label of the examples, or the mean of their numbers."""
        labels = [example.label for example in examples]
        answer = Counter(labels).most_common(1)[0][0]
        if self.labels is None:
            answer = float(np.mean([float(label) for label in labels]))
        return Predictions({example.id: answer for example in examples})
