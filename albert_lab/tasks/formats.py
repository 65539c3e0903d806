"""The forms of the tasks' files: a section of a task's YAML with read(), which returns examples and issues.

read(file, training) leaves out examples without a usable label. `scores` has the names of the possible scores, `needs`
the required settings of the kind, `sequences` the sequences per example. Readers raise MissingDataError if a file does
not exist, and ConfigError if it has another form; both name the file.
"""

import math
import string
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from albert_lab import files
from albert_lab.config.section import Section
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.record import Distinct
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import Answer, ChoiceExample, Issue, SpanExample, TextExample, collect
from albert_lab.tasks.rows import as_text, read_rows, text

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


def _known(cell: str, labels: Sequence[str]) -> str:
    """The label that a cell has, `2` also as `2.0`."""
    try:
        number = as_text(float(cell))
    except ValueError:
        number = None
    for label in (cell, number):
        if label in labels:
            return str(label)
    raise ValueError(f"{cell!r} is none of the labels {', '.join(labels)}")


class GlueFormat(Section):
    """One or two texts with a label, one example per row; if labels is null, the label is a number.

    columns are those of a table without a header line.
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

    def read(self, file: Path, training: bool) -> tuple[list[TextExample], list[Issue]]:
        """The examples of a file. Their ids are the line numbers after the header, from 0."""
        wanted = [self.text_a, self.text_b, self.label]
        return collect(read_rows(file, wanted, self.columns, self.header), self._example)

    def _example(self, number: int, cells: dict[str, Any]) -> TextExample:
        text_a, text_b = text(cells, self.text_a), text(cells, self.text_b) if self.text_b else None
        label = text(cells, self.label)
        if self.labels is not None:
            return TextExample(str(number), text_a, text_b, _known(label, self.labels))
        if not math.isfinite(float(label)):
            raise ValueError(f"{self.label} is {label}, not a finite number")
        return TextExample(str(number), text_a, text_b, float(label))


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

    def read(self, file: Path, training: bool) -> tuple[list[ChoiceExample], list[Issue]]:
        """The questions of a file. Their ids are the line numbers after the header, from 0."""
        named = [self.options] if isinstance(self.options, str) else self.options
        wanted = [self.passage, self.question, *named, self.label]
        return collect(read_rows(file, wanted, self.columns, self.header), partial(self._example, file))

    def _example(self, file: Path, number: int, cells: dict[str, Any]) -> ChoiceExample:
        passage, question = (text(cells, name) if name else "" for name in (self.passage, self.question))
        listed = cells.get(self.options) if isinstance(self.options, str) else [*map(cells.get, self.options)]
        labels = self.labels
        if isinstance(listed, dict):
            labels, listed = labels or listed.get("label"), listed.get("text")
        options = [as_text(option) or "" for option in listed] if isinstance(listed, list) else []
        while options and not options[-1]:
            options.pop()
        if not FEWEST <= len(options) <= len(LETTERS):
            raise ValueError(f"{len(options)} options, not {FEWEST} to {len(LETTERS)}")
        label = text(cells, self.label)
        if isinstance(labels, list | tuple):
            names = [as_text(name) or "" for name in labels]
            index = names.index(_known(label, names))
        elif label.isdecimal() and label.isascii():
            index = int(label[:3])
            if index >= len(options):
                raise ConfigError(
                    f"{file}: {self.label}={label} of {len(options)} options, numbered from 0; if the first one is 1:"
                    f" format.labels=[{','.join(str(place) for place in range(1, index + 1))}]"
                )
        else:
            index = LETTERS.index(_known(label, LETTERS))
        if index >= len(options):
            raise ValueError(f"{self.label} is {label!r}, none of the {len(options)} options")
        return ChoiceExample(str(number), passage, question, tuple(options), index)


class _Passage(BaseModel):
    article: str
    questions: list[str]
    options: list[list[str]]
    answers: list[str]


class RaceFormat(Section):
    """RACE's folders: a sub-folder per level, in it a JSON file per passage with its questions."""

    name: Literal["race"]
    scores: ClassVar[tuple[str, ...]] = ("accuracy",)
    needs: ClassVar[tuple[str, ...]] = ("question_length",)
    sequences: ClassVar[int] = 4

    def read(self, file: Path, training: bool) -> tuple[list[ChoiceExample], list[Issue]]:
        """The questions of a split's folder. Their ids are level/file/number, the number from 0."""
        # The release reads a folder from an additional file, all.txt, which repeats the others.
        names = sorted(path.relative_to(file).as_posix() for path in file.rglob("*.txt") if path.name != "all.txt")
        if not names:
            raise MissingDataError(f"{file} has no passage (*.txt in one sub-folder per level)")
        questions = []
        for name in names:
            passage = files.read_json(file / name, _Passage)
            asked = (passage.questions, passage.options, passage.answers)
            if len({*map(len, asked)}) > 1:
                raise ConfigError(f"{file / name}: as many questions as options and answers, not {[*map(len, asked)]}")
            for number, parts in enumerate(zip(*asked, strict=True)):
                questions.append((f"{name}/{number}", (f"{name}/{number}", passage.article, *parts)))
        return collect(questions, lambda _, parts: self._example(*parts))

    def _example(self, id: str, article: str, question: str, options: list[str], letter: str) -> ChoiceExample:
        letters = LETTERS[: self.sequences]
        if len(options) != len(letters):
            raise ValueError(f"{len(options)} options instead of {len(letters)}")
        if letter not in letters:
            raise ValueError(f"the answer is {letter!r}, not one of {', '.join(letters)}")
        return ChoiceExample(id, article, question, tuple(options), letters.index(letter))


def level(id: str) -> str:
    """The level of a question of RACE: the name of its sub-folder."""
    return id.rsplit("/", 2)[0] if id.count("/") > 1 else ""


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
    is_impossible: bool | None = None

    @field_validator("answers", mode="before")
    @classmethod
    def _as_items(cls, answers: Any) -> Any:
        """The answers of `datasets`, a list of texts and one of starts, in the official form."""
        if not isinstance(answers, dict):
            return answers
        texts, starts = answers.get("text"), answers.get("answer_start")
        if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
            raise ValueError("as many in text as in answer_start")
        return [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]


class _Paragraph(BaseModel):
    context: str
    qas: list[dict[str, Any]]


class _Article(BaseModel):
    title: str = ""
    paragraphs: list[_Paragraph]


class SquadFormat(Section):
    """Questions on contexts, of SQuAD 2.0 if unanswerable is true, else of 1.1.

    A file has the official form, articles with paragraphs, or one row per question, as `datasets` saves it.
    """

    name: Literal["squad"]
    unanswerable: bool
    sequences: ClassVar[int] = 1

    @property
    def needs(self) -> tuple[str, ...]:
        """The settings that the kind needs."""
        return ("question_length", "stride", "answer_length", "n_best", *["beam_size"] * self.unanswerable)

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the possible scores, as in the official scripts."""
        return metrics.OF_SQUAD2 if self.unanswerable else metrics.OF_SQUAD1

    def read(self, file: Path, training: bool) -> tuple[list[SpanExample], list[Issue]]:
        """The questions of a file of this version, in order; for training, only those with a usable answer."""
        examples, issues, seen = [], [], set()
        for question in self._questions(file):
            answers = tuple(answer.located(question.context) for answer in question.answers)
            located = [answer.start is not None for answer in answers]
            mark = question.is_impossible if self.unanswerable else None
            is_unusable = not answers and not self.unanswerable
            problem, is_left_out = next(
                (
                    (reason, is_left_out)
                    for reason, holds, is_left_out in (
                        ("its id occurs twice", question.id in seen, True),
                        ("marked impossible, with an answer", mark is True and answers, training),
                        ("not marked impossible, without an answer", mark is False and not answers, training),
                        ("no answer", is_unusable, True),
                        ("no answer is in the context where it says", answers and not any(located), training),
                        ("an answer is not in the context", not all(located), False),
                    )
                    if holds
                ),
                ("", False),
            )
            if problem:
                issues.append(Issue(question.id, problem))
            seen.add(question.id)
            if not is_left_out:
                parts = (question.id, question.question, question.context, answers)
                examples.append(SpanExample(*parts, self.unanswerable and not answers, question.title))
        return examples, issues

    def _questions(self, file: Path) -> list[_Question]:
        items = [cells for _, cells in read_rows(file)]
        is_official = any("paragraphs" in item for item in items)
        try:
            if is_official:
                items = [
                    {"context": paragraph.context, "title": article.title} | question
                    for article in TypeAdapter(list[_Article]).validate_python(items)
                    for paragraph in article.paragraphs
                    for question in paragraph.qas
                ]
            questions = TypeAdapter(list[_Question]).validate_python(items)
        except ValidationError as error:
            raise ConfigError(
                f"{file}: {files.describe(files.details_of(error)[0])}; SQuAD's form has data: [{{title, paragraphs:"
                " [{context, qas}]}], that of `datasets` rows of id, context, question and answers: {text,"
                " answer_start}"
            ) from error
        # Rows of `datasets` have no marks.
        if is_official and self.unanswerable != any(question.is_impossible is not None for question in questions):
            has, is_for = ("1.1", "2.0") if self.unanswerable else ("2.0", "1.1")
            raise ConfigError(f"{file}: a file of SQuAD {has} (by is_impossible of its questions), not {is_for}")
        return questions
