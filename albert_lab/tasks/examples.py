"""The examples of tasks: texts with a label, questions with answers or options."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
# The choice of examples does not depend on the seed of a fine-tuning, so that seeds differ only by
# chance.
_SUBSAMPLE_SEED = 2020
SHOWN_PLACES = 3
SHOWN_REASONS = 10  # of issues


@dataclass(frozen=True, slots=True)
class TextExample:
    """One or two texts and the label: the name of a class, or a number."""

    id: str
    text_a: str
    text_b: str | None
    label: str | float

    @property
    def together(self) -> str:
        """The text by which examples are split into train and dev: equal ones stay together."""
        return self.text_a


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
    def together(self) -> str:
        return self.context


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question about a passage, its options, and the index of the right one."""

    id: str
    passage: str
    question: str
    options: tuple[str, ...]
    label: int

    @property
    def together(self) -> str:
        return self.passage or self.question or self.options[0]


# What is wrong with the examples of a file: reasons, each with the places of its examples.
Issues = defaultdict[str, list[str]]


def collect(
    rows: Iterable[tuple[str, Any]], make: Callable[[int, Any], T], issues: Issues | None = None
) -> tuple[list[T], str]:
    """The examples that `make` can make of numbered rows, given by place and content, and what is
    wrong with others.

    Args:
        make: raises ValueError with the reason if an example cannot be used.
        issues: to which `make` may add.
    """
    examples: list[T] = []
    issues = defaultdict(list) if issues is None else issues
    for number, (place, content) in enumerate(rows):
        try:
            example: Any = make(number, content)
            json.dumps(asdict(example), ensure_ascii=False).encode()
        except UnicodeError:
            issues["text that is not UTF-8, as of a cut emoji"].append(place)
        except ValueError as error:
            issues[str(error)].append(place)
        else:
            examples.append(example)
    # One reason with its count and first places is `no answer: 5 (a, b, c, ...)`.
    described = [
        f"{reason}: {len(places):,} ({', '.join(_first(places, SHOWN_PLACES))})"
        for reason, places in issues.items()
    ]
    return examples, "; ".join(_first(described, SHOWN_REASONS))


def _first(texts: list[str], count: int) -> list[str]:
    return texts if len(texts) <= count else [*texts[:count], "..."]


def subsample(examples: Sequence[T], size: int | None) -> list[T]:
    """A fixed subsample of `size` examples, in order; all examples if size is None."""
    rng = np.random.Generator(np.random.Philox(key=_SUBSAMPLE_SEED))
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:size])]
