"""Classification of or regression on one or two texts: the kind of the GLUE tasks."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_lab.data.tokenizer import Tokenizer
from albert_lab.model.shape import EncoderShape
from albert_lab.tasks import metrics
from albert_lab.tasks.batches import Features, cut_pair, join
from albert_lab.tasks.formats import TextExample
from albert_lab.tasks.heads import PooledHead
from albert_lab.tasks.kind import NaProbs, Predictions, Scored, Scores, TaskKind


class Kind(TaskKind):
    """Classification, or regression if the task's format has no labels."""

    def make_features(self, examples: Sequence[TextExample], tokenizer: Tokenizer, *, training: bool) -> Features:
        """One row per example: `[CLS] a [SEP] b [SEP]`; the longer of two texts is truncated first."""
        firsts, seconds = (tokenizer.encode([example.texts[place] for example in examples]) for place in (0, 1))
        rows = []
        cut = 0
        for example, first, second in zip(examples, firsts, seconds, strict=True):
            is_pair = example.text_b is not None
            room = self.settings.max_sequence_length - (3 if is_pair else 2)
            cut += len(first) + len(second) > room
            first, second = cut_pair(first, second, room)
            rows.append(join(tokenizer, first, second if is_pair else None))
        labels: Any = [example.label for example in examples]
        if (known := self.form.labels) is not None:
            labels = [known.index(label) for label in labels]
        targets = np.array(labels, dtype=np.float32 if known is None else np.int64)
        return Features(rows, {"labels": targets}, tokenizer.pad_id, cut=cut)

    def build_head(self, shape: EncoderShape) -> PooledHead:
        return PooledHead(shape.hidden_size, len(self.form.labels or "1"), self.settings.classifier_dropout)

    def chance_loss(self, features: Features) -> float:
        """The entropy of the labels, or the variance of the numbers."""
        labels = features.targets["labels"]
        if self.form.labels is None:
            return float(labels.var())
        shares = np.bincount(labels) / len(labels)
        return float(-sum(share * math.log(share) for share in shares if share))

    def predict(self, examples: Sequence[TextExample], scores: Scores) -> Predictions:
        """The most probable label, or the number."""
        values, labels = scores["values"], self.form.labels
        return values[:, 0].tolist() if labels is None else [labels[at] for at in values.argmax(axis=1)], None

    def constant(self, examples: Sequence[TextExample]) -> Sequence[Any]:
        """The label that scores best as the answer to all examples, or the mean of their numbers."""
        labels = [example.label for example in examples]
        if self.form.labels is None:
            return [float(np.mean(np.array(labels, float)))] * len(examples)
        answers = [[label] * len(examples) for label, _ in Counter(labels).most_common()]
        return max(answers, key=lambda of: self.task.main_score(self.score(examples, of).values))

    def score(self, examples: Sequence[TextExample], answers: Sequence[Any], na_probs: NaProbs = None) -> Scored:
        labels, names, known = [example.label for example in examples], self.task.format.scores, self.form.labels
        sides: Any = [[known.index(label) for label in side] if known else side for side in (labels, answers)]
        values = {name: metrics.of_glue(name, *sides) for name in names}
        right = {"accuracy": [float(a == b) for a, b in zip(*sides, strict=True)]} if "accuracy" in names else {}
        return Scored(answers, values, right)
