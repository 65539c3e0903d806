"""The forms of the tasks' files: a section of a task's YAML with read(), which returns examples and issues.

read(file, training) leaves out examples without a usable label. `scores` has the names of the possible scores. Readers
raise MissingDataError if a file does not exist, and ConfigError if it has another form; both name the file.
"""

import math
import string
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError, model_validator

from albert_lab import files
from albert_lab.config.section import Section
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import Distinct
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import (
    Answer,
    ChoiceExample,
    Issues,
    SpanExample,
    TextExample,
    as_text,
    collect,
    read_rows,
    text,
)

LETTERS = tuple(string.ascii_uppercase)
NUMBERS = tuple(map(str, range(len(LETTERS) + 1)))
FEWEST = 2


def _as_texts(labels: Any) -> Any:
    if not isinstance(labels, list):
        return labels
    if any(isinstance(label, bool) for label in labels):
        raise ValueError("write them in quotation marks: YAML reads yes, no, on, off, true and false as booleans")
    return tuple(str(label) if isinstance(label, int) else label for label in labels)


# Labels as written in the file; a whole number is read as its digits.
Labels = Annotated[tuple[str, ...] | None, BeforeValidator(_as_texts), Distinct]


def _place(cell: str, labels: Sequence[str]) -> int:
    """The place of a cell among labels; `2` is also `2.0`."""
    try:
        number = as_text(float(cell))
    except ValueError:
        number = None
    for label in (cell, number):
        if label in labels:
            return labels.index(label)
    raise ValueError(f"{cell!r} is none of the labels {', '.join(labels)}")


class TableFormat(Section):
    """An example a row. columns are those of a table without a header line; label is the column of the label."""

    columns: tuple[str, ...]
    header: bool
    label: str
    labels: Labels

    def rows(self, file: Path, *wanted: str | None) -> list[tuple[str, dict[str, Any]]]:
        """The rows of a file, which must have the wanted columns, and that of the label."""
        return read_rows(file, [*wanted, self.label], self.columns, self.header)


class GlueFormat(TableFormat):
    """One or two texts with a label; if labels is null, the label is a number."""

    name: Literal["glue"]
    text_a: str
    text_b: str | None

    @property
    def scores(self) -> tuple[str, ...]:
        if self.labels is None:
            return tuple(metrics.OF_NUMBERS)
        return tuple(name for name in metrics.OF_CLASSES if name != "f1" or len(self.labels) == 2)

    def read(self, file: Path, training: bool) -> tuple[list[TextExample], Issues]:
        """The examples of a file. Their ids are the line numbers after the header, from 0."""
        return collect(self.rows(file, self.text_a, self.text_b), self._example)

    def _example(self, number: int, cells: dict[str, Any]) -> TextExample:
        text_a, text_b = text(cells, self.text_a), text(cells, self.text_b) if self.text_b else None
        label: str | float = text(cells, self.label)
        if self.labels is not None:
            label = self.labels[_place(label, self.labels)]
        elif not math.isfinite(label := float(label)):
            raise ValueError(f"{self.label} is {label}, not a finite number")
        return TextExample(str(number), text_a, text_b, label)


class ChoicesFormat(TableFormat):
    """Questions with any number of options.

    passage and question are null if the file has no such column. options has one column per option, of which the last
    may be empty, or one column with a list of options, or with {text, label} as ARC has it. labels are the values of
    the label in the order of options; null: letters from A, or numbers from 0, or those of {text, label}.
    """

    name: Literal["choices"]
    passage: str | None
    question: str | None
    options: str | tuple[str, ...]
    scores: ClassVar[tuple[str, ...]] = ("accuracy",)

    @model_validator(mode="after")
    def _parts_fit(self) -> "ChoicesFormat":
        if self.passage is None and self.question is None:
            raise ValueError("passage or question must name a column")
        return self

    def read(self, file: Path, training: bool) -> tuple[list[ChoiceExample], Issues]:
        """The questions of a file. Their ids are the line numbers after the header, from 0.

        Raises:
            ConfigError: the label is a letter in one row and a number in another, or the numbers do not start at 0.
        """
        named = (self.options,) if isinstance(self.options, str) else self.options
        rows = self.rows(file, self.passage, self.question, *named)
        keys = {as_text(cells.get(self.label)) or "" for _, cells in rows}
        numbers, letters = sorted(key for key in keys if key[:1].isdecimal()), sorted(keys.intersection(LETTERS))
        if numbers and letters and not self.labels and not any(self._labels_of_options in cells for _, cells in rows):
            raise ConfigError(
                f"{file}: {self.label} is a letter in some rows and a number in others ({letters[0]}, {numbers[0]}):"
                " write it in one way, or give the labels of each row's options (choices: {text: [...], label: [...]})"
            )
        return collect(rows, partial(self._example, file, NUMBERS if numbers else LETTERS))

    @property
    def _labels_of_options(self) -> str:
        return f"{self.options.removesuffix('.text')}.label" if isinstance(self.options, str) else ""

    def _example(self, file: Path, usual: tuple[str, ...], number: int, cells: dict[str, Any]) -> ChoiceExample:
        passage, question = (text(cells, name) if name else "" for name in (self.passage, self.question))
        listed = [*map(cells.get, self.options)]
        if isinstance(self.options, str):
            listed = cells.get(f"{self.options.removesuffix('.text')}.text", cells.get(self.options))
        labels = self.labels or cells.get(self._labels_of_options) or usual
        options = [as_text(option) or "" for option in listed] if isinstance(listed, list) else []
        while options and not options[-1]:
            options.pop()
        label = text(cells, self.label)
        index = _place(label, [as_text(name) or "" for name in labels] if isinstance(labels, list | tuple) else [])
        if index >= len(options) > 0 and labels is NUMBERS:
            raise ConfigError(
                f"{file}: {self.label}={label} of {len(options)} options, numbered from 0; if the first one is 1:"
                f" format.labels=[{','.join(NUMBERS[1 : index + 1])}]"
            )
        return _choice(index, str(number), passage, question, options)


def _choice(index: int, id: str, passage: str, question: str, options: Sequence[str]) -> ChoiceExample:
    if not FEWEST <= len(options) <= len(LETTERS):
        raise ValueError(f"{len(options)} options, not {FEWEST} to {len(LETTERS)}")
    if index >= len(options):
        raise ValueError(f"the label is that of option {index + 1} of {len(options)}")
    return ChoiceExample(id, passage, question, tuple(options), index)


class _Passage(BaseModel):
    article: str
    questions: list[str]
    options: list[list[str]]
    answers: list[str]


class RaceFormat(Section):
    """RACE's folders: a sub-folder per level, in it a JSON file per passage with its questions."""

    name: Literal["race"]
    scores: ClassVar[tuple[str, ...]] = ("accuracy",)

    def read(self, file: Path, training: bool) -> tuple[list[ChoiceExample], Issues]:
        """The questions of a split's folder. Their ids are level/file/number, the number from 0."""
        # The release reads a folder from an additional file, all.txt, which repeats the others.
        names = sorted(path.relative_to(file).as_posix() for path in file.rglob("*.txt") if path.name != "all.txt")
        if not names:
            raise MissingDataError(f"{file} has no passage (*.txt in one sub-folder per level)")
        asked: list[tuple[str, Any]] = []
        for name in names:
            passage = files.read_json(file / name, _Passage)
            parts = (passage.questions, passage.options, passage.answers)
            if len({*map(len, parts)}) > 1:
                raise ConfigError(f"{file / name}: as many questions as options and answers, not {[*map(len, parts)]}")
            for number, of_question in enumerate(zip(*parts, strict=True)):
                asked.append((f"{name}/{number}", (f"{name}/{number}", passage.article, *of_question)))
        return collect(asked, lambda _, parts: _choice(_place(parts[-1], LETTERS), *parts[:-1]))


class _Answer(BaseModel):
    text: str
    answer_start: int

    def located(self, context: str) -> Answer:
        start = self.answer_start
        is_there = self.text and start >= 0 and context.startswith(self.text, start)
        return Answer(self.text, start if is_there else None)


class _Question(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    id: str
    question: str
    context: str
    title: str = ""
    answers: tuple[_Answer, ...] = ()


class SquadFormat(Section):
    """Questions on contexts, of SQuAD 2.0 if unanswerable is true, else of 1.1.

    A file has the official form, articles with paragraphs, or one row per question, as `datasets` saves it.
    """

    name: Literal["squad"]
    unanswerable: bool

    @property
    def scores(self) -> tuple[str, ...]:
        return metrics.OF_SQUAD2 if self.unanswerable else metrics.OF_SQUAD1

    def read(self, file: Path, training: bool) -> tuple[list[SpanExample], Issues]:
        """The questions of a file, in order; for training, only those with a usable answer."""
        items, seen = [cells for _, cells in read_rows(file)], set()
        try:
            if any("paragraphs" in item for item in items):
                items = [
                    {"context": paragraph["context"], "title": article.get("title", ""), **question}
                    for article in items
                    for paragraph in article["paragraphs"]
                    for question in paragraph["qas"]
                ]
            for item in items:
                if "answers.text" in item:  # as `datasets` has them: a list of texts and one of starts
                    pairs = zip(item["answers.text"], item["answers.answer_start"], strict=True)
                    item["answers"] = [{"text": text, "answer_start": start} for text, start in pairs]
            questions = TypeAdapter(list[_Question]).validate_python(items)
        except (ValueError, KeyError, TypeError) as error:
            of = files.describe(files.details_of(error)[0]) if isinstance(error, ValidationError) else repr(error)
            raise ConfigError(
                f"{file}: {of}; SQuAD's form has data: [{{title, paragraphs: [{{context, qas}}]}}], that of `datasets`"
                " rows of id, context, question and answers: {text, answer_start}"
            ) from error

        def example(_: int, asked: _Question) -> SpanExample:
            if asked.id in seen:
                raise ValueError("its id occurs twice")
            seen.add(asked.id)
            if not asked.answers and not self.unanswerable:
                raise ValueError("no answer")
            answers = tuple(answer.located(asked.context) for answer in asked.answers)
            if training and answers and all(answer.start is None for answer in answers):
                raise ValueError("no answer is in the context where it says")
            return SpanExample(asked.id, asked.question, asked.context, answers, not answers, asked.title)

        return collect(((asked.id, asked) for asked in questions), example)
