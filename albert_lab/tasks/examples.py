"""The examples of tasks: texts with a label, questions with answers or options."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from albert_lab.errors import ConfigError

T = TypeVar("T")
# The choice of examples does not depend on the seed of a fine-tuning, so that seeds differ only by
# chance.
_SUBSAMPLE_SEED = 2020
SHOWN_PLACES = 3  # of an issue


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
        return self.passage or self.question or self.options[0], self.question, *self.options


class Issues:
    """What is wrong with the examples of a file: reasons, each with the places of its examples."""

    def __init__(self) -> None:
        self.places: dict[str, list[str]] = {}

    def add(self, reason: str, place: str) -> None:
        self.places.setdefault(reason, []).append(place)

    def __str__(self) -> str:
        """One line: each reason with its count and first places, as in `no answer: 5 (a, b, c,
        ...)`.
        """
        parts = []
        for reason, places in self.places.items():
            shown = ", ".join(places[:SHOWN_PLACES]) + ", ..." * (len(places) > SHOWN_PLACES)
            parts.append(f"{reason}: {len(places):,} ({shown})")
        return "; ".join(parts)


def collect(
    rows: Iterable[tuple[str, Any]], make: Callable[[int, Any], T], issues: Issues | None = None
) -> tuple[list[T], str]:
    """The examples that `make` can make of numbered rows, given by place and content, and what is
    wrong with others.

    Args:
        make: raises ValueError with the reason if an example cannot be used.
        issues: what is wrong so far, to which `make` may add.
    """
    examples: list[T] = []
    issues = issues or Issues()
    for number, (place, content) in enumerate(rows):
        try:
            example: Any = make(number, content)
            json.dumps(asdict(example), ensure_ascii=False).encode()
        except ConfigError:  # of the whole file
            raise
        except UnicodeError:
            issues.add("text that is not UTF-8, as of a cut emoji", place)
        except ValueError as error:
            issues.add(str(error), place)
        else:
            examples.append(example)
    return examples, str(issues)


def subsample(examples: Sequence[T], size: int | None) -> list[T]:
    """A fixed subsample of `size` examples, in order; all examples if size is None."""
    rng = np.random.Generator(np.random.Philox(key=_SUBSAMPLE_SEED))
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:size])]
