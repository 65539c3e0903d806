"""The forms of the tasks' files: a section of a task's YAML with read(), which returns examples and issues.

read(file, labelled) leaves out examples without a usable label if labelled, and keeps them otherwise. `scores` has the
names of the possible scores, `needs` the required settings of the kind, `sequences` the sequences per example. Readers
raise MissingDataError if a file does not exist, and ConfigError if it has another form or nothing in it can be used;
both name the file.
"""

import math
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    model_validator,
)

from albert_lab import files
from albert_lab.config.section import Section
from albert_lab.distinct import Distinct
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import ChoiceExample, Issue, TextExample, usable
from albert_lab.tasks.rows import Row, as_text, check_columns, check_file, read_rows

T = TypeVar("T")
LETTERS = tuple(string.ascii_uppercase)
FEWEST = 2
BLANK = "_"  # in a question of RACE


def _as_texts(labels: Any) -> Any:
    if not isinstance(labels, list):
        return labels
    if any(isinstance(label, bool) for label in labels):
        raise ValueError("write them in quotation marks: YAML reads yes, no, on, off, true and false as booleans")
    return tuple(str(label) if isinstance(label, int) else label for label in labels)


# Labels as written in the file; a whole number is read as its digits.
Labels = Annotated[tuple[str, ...] | None, BeforeValidator(_as_texts), Distinct]


def _known(text: str, labels: Sequence[str]) -> str | None:
    """The label that a cell has, `2` also as `2.0`; None if it has none."""
    if text in labels:
        return text
    try:
        number = as_text(float(text))
    except ValueError:
        return None
    return number if number in labels else None


class GlueFormat(Section):
    """One or two texts with a label, one example per row; if labels is null, the label is a number.

    columns are those of a tab-separated file without a header line.
    """

    name: Literal["glue"]
    columns: tuple[str, ...]
    header: bool
    text_a: str
    text_b: str | None
    label: str
    labels: Labels
    needs: ClassVar[tuple[str, ...]] = ()
    sequences: ClassVar[int] = 1

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the possible scores."""
        if self.labels is None:
            return tuple(metrics.OF_NUMBERS)
        return tuple(name for name in metrics.OF_CLASSES if name != "f1" or len(self.labels) == 2)

    def read(self, file: Path, labelled: bool) -> tuple[list[TextExample], list[Issue]]:
        """The examples of a file. Their ids are the line numbers after the header, from 0."""
        # The marker is needed since CoLA's test file has a header, but its other files have none.
        rows = read_rows(file, self.columns, self.header, self.text_a)
        check_columns(file, rows, [self.text_a, self.text_b, self.label if labelled else None])
        examples, issues = [], []
        for row in rows:
            text_a, text_b = row.text(self.text_a), row.text(self.text_b)
            if text_a is None or (text_b is None and self.text_b):
                absent = self.text_a if text_a is None else self.text_b
                issues.append(Issue(row.place, row.flaw or f"no text in {absent}"))
                continue
            cell = row.text(self.label)
            label = None if cell is None else self._label(cell)
            if label is None and self.label in row.cells:
                allowed = "a number" if self.labels is None else f"one of {', '.join(self.labels)}"
                issues.append(Issue(row.place, f"{self.label} is {cell!r}, not {allowed}"))
            if label is not None or not labelled:
                examples.append(TextExample(str(row.number), text_a, text_b, label))
        return usable(file, examples, issues, "example")

    def _label(self, text: str) -> str | float | None:
        if self.labels is not None:
            return _known(text, self.labels)
        try:
            number = float(text)
        except ValueError:
            return None
        return number if math.isfinite(number) else None


class ChoicesFormat(Section):
    """Questions with any number of options, one per row.

    passage and question are null if the file has no such column. options has one column per option, of which the last
    may be empty, or one column with a list of options, or with {text, label} as ARC has it. labels are the values of
    the label in the order of options; null: letters from A, or numbers from 0, or those of {text, label}.
    """

    name: Literal["choices"]
    columns: tuple[str, ...]
    header: bool
    passage: str | None
    question: str | None
    options: str | tuple[str, ...]
    label: str
    labels: Labels
    scores: ClassVar[tuple[str, ...]] = ("accuracy",)
    needs: ClassVar[tuple[str, ...]] = ("question_length",)

    @property
    def sequences(self) -> int:
        """Number of options of a question; four, as an estimate, if it depends on the file."""
        return 4 if isinstance(self.options, str) else len(self.options)

    @model_validator(mode="after")
    def _parts_fit(self) -> "ChoicesFormat":
        if self.passage is None and self.question is None:
            raise ValueError("passage or question must name a column")
        if isinstance(self.options, str):
            return self
        if not FEWEST <= len(self.options) <= len(LETTERS):
            raise ValueError(f"options must name {FEWEST} to {len(LETTERS)} columns, or one with a list of them")
        if self.labels is not None and len(self.labels) != len(self.options):
            raise ValueError(f"{len(self.labels)} labels for {len(self.options)} options")
        return self

    def read(self, file: Path, labelled: bool) -> tuple[list[ChoiceExample], list[Issue]]:
        """The questions of a file. Their ids are the line numbers after the header, from 0."""
        texts = [name for name in (self.passage, self.question) if name]
        named = [self.options] if isinstance(self.options, str) else list(self.options)
        rows = read_rows(file, self.columns, self.header, texts[0])
        check_columns(file, rows, [*texts, *named, self.label if labelled else None])
        options_of = {row.number: self._options(row) for row in rows}
        if self.labels is None:
            self._check_labels(
                file, [(row.text(self.label), len(options_of[row.number])) for row in rows if self._labels(row) is None]
            )
        examples, issues = [], []
        for row in rows:
            options = options_of[row.number]
            absent = [name for name in texts if row.text(name) is None]
            flaw = row.flaw or (f"no text in {absent[0]}" if absent else "")
            if not flaw and not FEWEST <= len(options) <= len(LETTERS):
                flaw = f"{len(options)} options"
            if flaw:
                issues.append(Issue(row.place, flaw))
                continue
            cell = row.text(self.label)
            label = None if cell is None else self._index(cell, len(options), self._labels(row))
            if label is None and self.label in row.cells:
                issues.append(Issue(row.place, f"{self.label} is {cell!r}, none of the {len(options)} options"))
            if label is not None or not labelled:
                passage, question = row.text(self.passage) or "", row.text(self.question) or ""
                examples.append(ChoiceExample(str(row.number), passage, question, options, label))
        return usable(file, examples, issues)

    def _options(self, row: Row) -> tuple[str, ...]:
        if isinstance(self.options, str):
            return row.texts(self.options)
        texts = [row.text(name) or "" for name in self.options]
        while texts and not texts[-1]:
            texts.pop()
        return tuple(texts)

    def _labels(self, row: Row) -> Sequence[str] | None:
        """The labels of the options of a row, if the file or the task's file names them."""
        cell = row.cells.get(self.options) if isinstance(self.options, str) else None
        own = cell.get("label") if isinstance(cell, dict) else None
        return self.labels or ([as_text(label) or "" for label in own] if isinstance(own, list) else None)

    def _check_labels(self, file: Path, found: Sequence[tuple[str | None, int]]) -> None:
        """Refuses labels without names that are both letters and numbers, or numbers from 1."""
        numbers = [
            (int(text), count)
            for text, count in found
            if text and text.isdecimal() and text.isascii() and len(text) < 3
        ]
        letters = sorted({text for text, _ in found if text in LETTERS})
        if numbers and letters:
            raise ConfigError(
                f"{file}: {self.label} has both letters and numbers ({letters[0]}, {numbers[0][0]}): write one of them"
            )
        if numbers and min(number for number, _ in numbers) > 0 and any(number == count for number, count in numbers):
            most = max(count for _, count in numbers)
            raise ConfigError(
                f"{file}: {self.label} has numbers up to {most}, the number of options, and is read as counting from 0;"
                f" if labels start at 1: labels: [{', '.join(map(str, range(1, most + 1)))}]"
            )

    def _index(self, text: str, count: int, labels: Sequence[str] | None) -> int | None:
        if labels is not None:
            label = _known(text, labels)
            index = count if label is None else labels.index(label)
        elif text.isdecimal() and text.isascii():
            index = int(text[:3])
        else:
            index = LETTERS.index(text) if text in LETTERS else count
        return index if index < count else None


class _Passage(BaseModel):
    article: str
    questions: list[str]
    options: list[list[str]]
    answers: list[str] | None = None


class RaceFormat(Section):
    """RACE's folders: a sub-folder per level, in it a JSON file per passage with its questions."""

    name: Literal["race"]
    scores: ClassVar[tuple[str, ...]] = ("accuracy",)
    needs: ClassVar[tuple[str, ...]] = ("question_length",)
    letters: ClassVar[tuple[str, ...]] = LETTERS[:4]
    sequences: ClassVar[int] = 4

    def read(self, file: Path, labelled: bool) -> tuple[list[ChoiceExample], list[Issue]]:
        """The questions of a split's folder. Their ids are level/file/number, the number from 0."""
        # The release reads a folder from an additional file, all.txt, which repeats the others.
        names = sorted(path.relative_to(file).as_posix() for path in file.rglob("*.txt") if path.name != "all.txt")
        if not names:
            raise MissingDataError(f"{file} has no passage (*.txt in one sub-folder per level)")
        examples, issues = [], []
        for name in names:
            check_file(file / name)
            passage = files.read_json(file / name, _Passage)
            answers = _answers(file / name, passage, labelled)
            for number, (question, options) in enumerate(zip(passage.questions, passage.options, strict=True)):
                id = f"{name}/{number}"
                letter = answers[number] if answers else None
                if len(options) != len(self.letters):
                    issues.append(Issue(id, f"{len(options)} options instead of {len(self.letters)}"))
                    continue
                label = self.letters.index(letter) if letter in self.letters else None
                if label is None and letter is not None:
                    issues.append(Issue(id, f"the answer is {letter!r}, not one of {', '.join(self.letters)}"))
                if label is not None or not labelled:
                    examples.append(ChoiceExample(id, passage.article, question, tuple(options), label))
        return usable(file, examples, issues)


def _answers(path: Path, passage: _Passage, labelled: bool) -> list[str] | None:
    counts = {"questions": len(passage.questions), "options": len(passage.options)}
    if passage.answers is not None:
        counts["answers"] = len(passage.answers)
    elif labelled:
        raise ConfigError(f"{path}: answers are missing")
    if len(set(counts.values())) > 1:
        raise ConfigError(f"{path}: {', '.join(f'{count} {key}' for key, count in counts.items())}")
    return passage.answers


def level(id: str) -> str:
    """The level of a question of RACE: the name of its sub-folder."""
    return id.rsplit("/", 2)[0] if id.count("/") > 1 else ""
