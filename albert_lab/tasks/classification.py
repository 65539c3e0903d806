"""Classification of or regression on one or two texts: the kind of the GLUE tasks."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import entropy

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks import metrics
from albert_lab.tasks.batches import Features, cut_pair, join
from albert_lab.tasks.examples import TextExample
from albert_lab.tasks.heads import PooledHead
from albert_lab.tasks.kind import NaProbs, Outputs, Predictions, Scored, TaskKind


class Kind(TaskKind):
    """Classification, or regression if the task's format has no labels."""

    def make_features(
        self, examples: Sequence[TextExample], tokenizer: Tokenizer, *, training: bool
    ) -> Features:
        """One row per example: `[CLS] a [SEP] b [SEP]`; the longer of two texts is truncated
        first.
        """
        firsts = tokenizer.encode([example.text_a for example in examples])
        seconds = tokenizer.encode([example.text_b or "" for example in examples])
        rows = []
        cut = 0
        for example, first, second in zip(examples, firsts, seconds, strict=True):
            is_pair = example.text_b is not None
            room = self.settings.max_sequence_length - (3 if is_pair else 2)
            cut += len(first) + len(second) > room
            first, second = cut_pair(first, second, room)
            rows.append(join(tokenizer, first, second if is_pair else None))
        labels = self._numbers([example.label for example in examples])
        dtype = np.float32 if self.form.labels is None else np.int64
        targets = {"labels": np.array(labels, dtype=dtype)}
        return Features(rows, targets, tokenizer.pad_id, cut=cut)

    def build_head(self, shape: EncoderShape) -> PooledHead:
        return PooledHead(
            shape.hidden_size, len(self.form.labels or "1"), self.settings.classifier_dropout
        )

    def chance_loss(self, features: Features) -> float:
        """The entropy of the labels, or the variance of the numbers."""
        labels = features.targets["labels"]
        if self.form.labels is None:
            return float(labels.var())
        return float(entropy(np.bincount(labels)))

    def predict(
        self, examples: Sequence[TextExample], features: Features, outputs: Outputs
    ) -> Predictions:
        """The most probable label, or the number."""
        values = outputs["values"]
        if self.form.labels is None:
            return values[:, 0].tolist(), None
        return [self.form.labels[number] for number in values.argmax(axis=1)], None

    def constant(self, examples: Sequence[TextExample]) -> Sequence[Any]:
        """The label that scores best as the answer to all examples, or the mean of their
        numbers.
        """
        labels = [example.label for example in examples]
        if self.form.labels is None:
            return [float(np.mean(np.array(labels, float)))] * len(examples)
        answers = [[label] * len(examples) for label, _ in Counter(labels).most_common()]
        return max(
            answers, key=lambda answer: self.task.main_score(self.score(examples, answer).values)
        )

    def score(
        self, examples: Sequence[TextExample], answers: Sequence[Any], na_probs: NaProbs = None
    ) -> Scored:
        labels = [example.label for example in examples]
        both = self._numbers(labels), self._numbers(answers)
        values = {name: metrics.of_glue(name, *both) for name in self.form.scores}
        shares = {}
        if "accuracy" in values:
            shares["accuracy"] = [
                float(label == answer) for label, answer in zip(labels, answers, strict=True)
            ]
        return Scored(values, shares)

    def _numbers(self, labels: Sequence[Any]) -> Sequence[float]:
        """The labels if they are numbers, else the place of each among those of the task."""
        if self.form.labels is None:
            return labels
        return [self.form.labels.index(label) for label in labels]
