"""The examples of a split that a fine-tuning uses, with their sequences of tokens."""

from typing import Any

from albert_lab.tasks.examples import Issue, describe
from albert_lab.tasks.features import Features, TextEncoder
from albert_lab.tasks.kind import TaskKind
from albert_lab.tasks.records import ExampleSet, fingerprint_of


class Split:
    """The used examples, in order, with their sequences; record describes both."""

    def __init__(
        self,
        examples: list[Any],
        available: int,
        issues: list[Issue],
        kind: TaskKind,
        encoder: TextEncoder,
        training: bool,
    ) -> None:
        self.examples = examples
        self.features: Features = kind.make_features(examples, encoder, training=training)
        self.record = ExampleSet(
            used=len(examples),
            available=available,
            fingerprint=fingerprint_of(examples),
            issues=describe(issues),
            counts=self.features.counts,
        )
