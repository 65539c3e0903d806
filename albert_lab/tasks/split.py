"""The examples of a split that a fine-tuning uses, with their sequences of tokens."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from albert_lab.config.schema import digest
from albert_lab.tasks.examples import Issue, describe
from albert_lab.tasks.features import Features, TextEncoder
from albert_lab.tasks.kind import TaskKind
from albert_lab.tasks.records import ExampleSet

# The choice of examples does not depend on the seed of a fine-tuning, so that seeds differ only by chance.
_SUBSAMPLE_SEED = 2020


def subsample(examples: Sequence[Any], size: int | None) -> list[Any]:
    """A fixed subsample of `size` examples, in order; all examples if size is None."""
    if size is None or size >= len(examples):
        return list(examples)
    rng = np.random.Generator(np.random.Philox(key=_SUBSAMPLE_SEED))
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:size])]


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
            fingerprint=digest([asdict(example) for example in examples]),
            issues=describe(issues),
            counts=self.features.counts,
        )
