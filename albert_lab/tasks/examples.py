"""The examples in the files of a task: one dataclass per kind of example, and the problems that some have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class TextExample:
    """One text or two, and the label: a class by its name, a number to regress on, or None where the file has none."""

    id: str
    text_a: str
    text_b: str | None
    label: str | float | None


class Answer(NamedTuple):
    """A gold answer and the character of the context it starts at; None where it is not found there."""

    text: str
    start: int | None


@dataclass(frozen=True, slots=True)
class SpanExample:
    """A question on a context. No answers: it is impossible to answer, or the file does not say."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    is_impossible: bool
    title: str = ""


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question on a passage, its options, and the index of the right one; None where the file does not give it."""

    id: str
    passage: str
    question: str
    options: tuple[str, ...]
    label: int | None


class Issue(NamedTuple):
    """Something wrong with an example: which (its id, or file:line where it has none of its own) and what."""

    example: str
    reason: str


def enumerate_few(names: Sequence[str]) -> str:
    """How many names there are, and the first of them: `5 (a, b, c, ...)`."""
    return f"{len(names)} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"


def describe(issues: Sequence[Issue]) -> str:
    """One line: each reason with its count and the first examples."""
    by_reason: dict[str, list[str]] = {}
    for issue in issues:
        by_reason.setdefault(issue.reason, []).append(issue.example)
    return "; ".join(f"{reason}: {enumerate_few(examples)}" for reason, examples in by_reason.items())
