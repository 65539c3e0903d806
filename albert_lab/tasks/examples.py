"""The examples in the files of a task: one dataclass per kind of example, and the problems of examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from albert_lab.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TextExample:
    """One or two texts and the label: the name of a class, a number for regression, or None if the file has none."""

    id: str
    text_a: str
    text_b: str | None
    label: str | float | None


class Answer(NamedTuple):
    """A gold answer and its first character in the context; None if the answer is not there."""

    text: str
    start: int | None


@dataclass(frozen=True, slots=True)
class SpanExample:
    """A question about a context. Without answers, it is unanswerable or the file has no labels."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    is_impossible: bool
    title: str = ""


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question about a passage, its options, and the index of the right one; None if the file has no labels."""

    id: str
    passage: str
    question: str
    options: tuple[str, ...]
    label: int | None


class Issue(NamedTuple):
    """A problem of an example: the example (its id, or file:line if it has none) and the reason."""

    example: str
    reason: str


def text_of(example: TextExample | SpanExample | ChoiceExample) -> str:
    """The text by which examples belong together: questions on one passage have the same."""
    match example:
        case TextExample():
            return example.text_a
        case SpanExample():
            return example.context
        case ChoiceExample():
            return example.passage or example.question


def cannot_be_learnt(examples: Sequence[TextExample | SpanExample | ChoiceExample]) -> str | None:
    """Why nothing can be learnt from examples or told by them: no text, or one label for all texts; else None."""
    if len(examples) < 2:
        return None
    if not any(_text(example).strip() for example in examples):
        return f"the texts of all {len(examples):,} examples are empty"
    labels = {example.label for example in examples if isinstance(example, TextExample)}
    if len(labels) == 1 and None not in labels:
        return f"all {len(examples):,} examples have the label {labels.pop()}: there is nothing to tell apart"
    return None


def _text(example: TextExample | SpanExample | ChoiceExample) -> str:
    match example:
        case TextExample():
            return example.text_a + (example.text_b or "")
        case SpanExample():
            return example.context
        case ChoiceExample():
            return example.passage + example.question + "".join(example.options)


def enumerate_few(names: Sequence[str]) -> str:
    """The number of names and the first of them: `5 (a, b, c, ...)`."""
    return f"{len(names)} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"


def describe(issues: Sequence[Issue]) -> str:
    """One line: each reason with its count and the first examples."""
    by_reason: dict[str, list[str]] = {}
    for issue in issues:
        by_reason.setdefault(issue.reason, []).append(issue.example)
    return "; ".join(f"{reason}: {enumerate_few(examples)}" for reason, examples in by_reason.items())


def usable(file: Path, examples: list[T], issues: list[Issue], what: str = "question") -> tuple[list[T], list[Issue]]:
    """The examples of a file and their issues; an error if there is no example."""
    if not examples:
        raise ConfigError(f"{file}: no {what} can be used: {describe(issues) or 'it has none'}")
    return examples, issues
