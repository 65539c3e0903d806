"""The examples in the files of a task, one dataclass per kind of example, and what is wrong with others."""

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


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question about a passage, its options, and the index of the right one."""

    id: str
    passage: str
    question: str
    options: tuple[str, ...]
    label: int


class Issue(NamedTuple):
    """A problem of an example: the example (its id, or file:line if it has none) and the reason."""

    example: str
    reason: str


def texts_of(example: TextExample | SpanExample | ChoiceExample) -> tuple[str, ...]:
    """The texts of an example; examples with the same first text belong together, as questions on one passage do."""
    match example:
        case TextExample():
            return example.text_a, example.text_b or ""
        case SpanExample():
            return (example.context,)
        case ChoiceExample():
            return example.passage or example.question, example.question, *example.options


def collect(rows: Iterable[tuple[str, Any]], make: Callable[[int, Any], T]) -> tuple[list[T], list[Issue]]:
    """The examples that `make` can make of numbered rows, given by place and content; an issue for each ValueError."""
    examples, issues = [], []
    for number, (place, content) in enumerate(rows):
        try:
            examples.append(make(number, content))
        except ConfigError:  # of the whole file
            raise
        except ValueError as error:
            issues.append(Issue(place, str(error)))
    return examples, issues


def describe(issues: Sequence[Issue]) -> str:
    """One line: each reason with its count and the first examples, as in `no answer: 5 (a, b, c, ...)`."""
    of: dict[str, list[str]] = {}
    for issue in issues:
        of.setdefault(issue.reason, []).append(issue.example)
    return "; ".join(
        f"{reason}: {len(names)} ({', '.join(names[:3])}{', ...' * (len(names) > 3)})" for reason, names in of.items()
    )


def subsample(examples: Sequence[T], size: int | None) -> list[T]:
    """A fixed subsample of `size` examples, in order; all examples if size is None."""
    if size is None or size >= len(examples):
        return list(examples)
    rng = np.random.Generator(np.random.Philox(key=_SUBSAMPLE_SEED))
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:size])]
