"""The examples of tasks, one class a kind, and what is wrong with those that were left out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from albert_lab.errors import ConfigError

T = TypeVar("T")
# The choice of examples does not depend on the seed of a fine-tuning, so that seeds differ only by chance.
_SUBSAMPLE_SEED = 2020


@dataclass(frozen=True, slots=True)
class TextExample:
    """One or two texts and the label: the name of a class, or a number."""

    id: str
    text_a: str
    text_b: str | None
    label: str | float

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts; of every kind, examples with the same first text belong together."""
        return self.text_a, self.text_b or ""


class Answer(NamedTuple):
    """A gold answer and its first character in the context; None if the answer is not there."""

    text: str
    start: int | None


@dataclass(frozen=True, slots=True)
class SpanExample:
    """A question about a context; without answers, it is unanswerable."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    is_impossible: bool
    title: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.context,)


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question about a passage, its options, and the index of the right one."""

    id: str
    passage: str
    question: str
    options: tuple[str, ...]
    label: int

    @property
    def texts(self) -> tuple[str, ...]:
        return self.passage or self.question, self.question, *self.options


# What is wrong with examples that were left out: their ids, or file:line without one, by reason.
Issues = dict[str, list[str]]


def collect(rows: Iterable[tuple[str, Any]], make: Callable[[int, Any], T]) -> tuple[list[T], Issues]:
    """The examples that `make` can make of numbered rows, given by place and content; an issue for each ValueError."""
    examples, issues = [], {}
    for number, (place, content) in enumerate(rows):
        try:
            examples.append(make(number, content))
        except ConfigError:  # of the whole file
            raise
        except ValueError as error:
            issues.setdefault(str(error), []).append(place)
    return examples, issues


def describe(issues: Issues) -> str:
    """One line: each reason with its count and the first examples, as in `no answer: 5 (a, b, c, ...)`."""
    shown = {reason: ", ".join(places[:3]) + ", ..." * (len(places) > 3) for reason, places in issues.items()}
    return "; ".join(f"{reason}: {len(issues[reason])} ({places})" for reason, places in shown.items())


def subsample(examples: Sequence[T], size: int | None) -> list[T]:
    """A fixed subsample of `size` examples, in order; all examples if size is None."""
    if size is None or size >= len(examples):
        return list(examples)
    rng = np.random.Generator(np.random.Philox(key=_SUBSAMPLE_SEED))
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:size])]
