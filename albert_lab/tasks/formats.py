"""The forms of files of tasks: a section of a task's YAML with read(), and what it cannot use.

read(file, training) leaves out examples without a usable label. `scores` has the names of the
scores. Readers raise MissingDataError if a file does not exist, and ConfigError if it has another
form; both name the file.
"""

import csv
import json
import math
import string
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from albert_lab import files
from albert_lab.config.section import Section
from albert_lab.data.files import READERS, csv_rows, lines_of, suffixes
from albert_lab.errors import ConfigError
from albert_lab.files import Distinct, check_distinct
from albert_lab.tasks.examples import (
    Answer,
    ChoiceExample,
    Issues,
    SpanExample,
    TextExample,
    collect,
)

OF_CLASSES = ("accuracy", "matthews", "f1")  # F1 of two classes
OF_NUMBERS = ("pearson", "spearman")
OF_SQUAD1 = ("f1", "exact_match")
OF_SQUAD2 = ("f1", "exact", "HasAns_f1", "HasAns_exact", "NoAns_f1", "NoAns_exact")
# Of SNLI where annotators disagreed, and of hidden test sets, as text and as `datasets` has them.
NO_GOLD_LABEL = ("-", "-1")
MOST_LABELS = 1000  # a floor of words has weights of each
LETTERS = tuple(string.ascii_uppercase)
SQUAD = (
    "it has data: [{paragraphs: [{context, qas}]}], or rows of id, context, question, answers: "
    "{text, answer_start}"
)
_ELSEWHERE = (
    "answer found by its text, not where it says (places in UTF-16, or before white space was cut?)"
)
_NOWHERE = "no answer has a place in the context, so a model may not find it"
ALL_PASSAGES = "all.txt"
FEWEST = 2
MOST = len(LETTERS)  # options of a question
# Labels as written in the file; a whole number is read as its digits.
Label = Annotated[str, Field(strict=False, coerce_numbers_to_str=True)]
Labels = Annotated[tuple[Label, ...], Distinct, Field(min_length=2, max_length=MOST_LABELS)]


def read_rows(
    file: Path, wanted: Sequence[str | None] = (), columns: Sequence[str] = ()
) -> list[tuple[str, Any]]:
    """The rows of a file by the end of its name: JSON, JSON Lines, CSV, parquet; any other name is
    tab-separated.

    Each is its place, file:number, and its values by column, none if it has more or fewer of them
    or is no object. In tab-separated files quotation marks are text, as in GLUE's.

    Args:
        wanted: columns that the file must have.
        columns: the columns of a table without a header line.

    Raises:
        MissingDataError: the file does not exist. ConfigError: it is empty, lacks a column, or has
            another form.
    """
    suffix = suffixes(file)[0]
    is_table = suffix in (".csv", ".tsv") or suffix not in READERS
    try:
        read: Any = _table(file, suffix == ".csv", columns) if is_table else READERS[suffix](file)
        lines = [(number, json.loads(row) if isinstance(row, str) else row) for number, row in read]
    except ConfigError:
        raise
    except (ValueError, RecursionError, csv.Error) as error:
        raise ConfigError(f"{file} cannot be read as {suffix or 'a table'}: {error}") from error
    match lines:
        case [(_, {"data": list() as rows})]:  # one object with all rows
            lines = [*enumerate(rows, 1)]
        case []:
            raise ConfigError(f"{file} has no examples")
    placed = [
        (f"{file.name}:{number}", row if isinstance(row, dict) else {}) for number, row in lines
    ]
    names = dict.fromkeys(name for _, cells in placed for name in cells)
    missing = [name for name in wanted if name and name not in names]
    if missing:
        raise ConfigError(
            f"{file}: no column {', '.join(missing)}; its columns: {', '.join(map(repr, names))}"
        )
    return placed


def _table(
    file: Path, is_csv: bool, columns: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """The cells of each line by column, none if it has more or fewer of them."""
    if is_csv:
        first = next((line for _, line in lines_of(file)), "")
        rows = csv_rows(file, ";" if first.count(";") > first.count(",") else ",")
    else:
        rows = ((number, line.split("\t")) for number, line in lines_of(file))
    names = columns or next(rows, (0, []))[1]
    number = 0
    broken: list[int] = []  # lines that end in a quoted cell
    for number, cells in rows:
        if len(cells) == len(names):
            yield number, dict(zip(names, cells, strict=True))
            continue
        if not is_csv and cells[-1].startswith('"') and cells[-1].count('"') % 2:
            broken.append(number)
        yield number, {}
    if 1000 * len(broken) > number:  # QQP's official file has 11 in 364,000
        raise ConfigError(f"{file}:{broken[0]}: a quoted cell of several lines; write it as CSV")


def _as_text(value: Any) -> str:
    """A cell as text; empty for anything but text, numbers and booleans."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else ""


def _texts(values: Any) -> list[str]:
    return [_as_text(value) for value in values] if isinstance(values, list | tuple) else []


def _text(cells: dict[str, Any], name: str) -> str:
    if not cells:
        raise ValueError("more or fewer columns than in the first line")
    text = _as_text(cells.get(name))
    if not text.strip():
        raise ValueError(f"no text in {name}")
    return text


def _place(cell: str, labels: Sequence[str]) -> int:
    """The place of a cell among labels; `2.0` is also `2`."""
    for label in (cell, cell.removesuffix(".0")):
        if label in labels:
            return labels.index(label)
        if label in NO_GOLD_LABEL:
            raise ValueError(
                f"no gold label ({label}, as where annotators disagree and in hidden test sets)"
            )
    known = textwrap.shorten(", ".join(labels), 200)
    raise ValueError(f"{cell!r} is none of format.labels, {known}")


class TableFormat(Section):
    """An example a row. columns are those of a table without a header line; label is the column of
    the label.
    """

    columns: tuple[str, ...] = ()
    label: str = "label"
    labels: Labels | None


class GlueFormat(TableFormat):
    """One or two texts with a label; if labels is null, the label is a number.

    metrics are the scores, the first of which is the task's; null: accuracy, or both correlations
    of numbers.
    """

    name: Literal["glue"]
    text_a: str
    text_b: str | None = None
    metrics: Annotated[tuple[str, ...] | None, Distinct] = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _parts_fit(self) -> "GlueFormat":
        check_distinct([self.text_a, self.text_b or "", self.label])
        known = OF_CLASSES
        if self.labels is None:
            known = OF_NUMBERS
        elif len(self.labels) > 2:
            known = OF_CLASSES[:2]
        for name in self.scores:
            files.check_known("metrics", name, known)
        return self

    @property
    def scores(self) -> tuple[str, ...]:
        return self.metrics or (OF_NUMBERS if self.labels is None else ("accuracy",))

    def read(self, file: Path, training: bool) -> tuple[list[TextExample], str]:
        """The examples of a file. Their ids are the line numbers after the header, from 0."""
        wanted = [self.text_a, self.text_b, self.label]
        return collect(read_rows(file, wanted, self.columns), self._make)

    def _make(self, number: int, cells: dict[str, Any]) -> TextExample:
        """The example of a row; its label is a name of labels, or a number without them.

        Raises:
            ValueError: the row cannot be used; collect() leaves it out and names this reason.
        """
        text_a = _text(cells, self.text_a)
        text_b = _text(cells, self.text_b) if self.text_b else None
        label: str | float = _text(cells, self.label)
        if self.labels is not None:
            label = self.labels[_place(label, self.labels)]
        elif not math.isfinite(label := float(label)):
            raise ValueError(f"{self.label} is {label}, not a finite number")
        return TextExample(str(number), text_a, text_b, label)


class ChoicesFormat(TableFormat):
    """Questions with any number of options.

    passage and question are null if the file has no such column. options has one column per option,
    of which the last may be empty, or one column with a list of options, or with {text, label} as
    ARC has it. labels are the values of the label in the order of options; null: letters from A, or
    those of {text, label}.
    """

    name: Literal["choices"]
    passage: str | None = None
    question: str | None = None
    labels: Labels | None = None
    options: str | Annotated[tuple[str, ...], Distinct]
    scores: ClassVar = ("accuracy",)

    def read(self, file: Path, training: bool) -> tuple[list[ChoiceExample], str]:
        """The questions of a file, by their line after the header, from 0."""
        columns = [self._listed] if self._listed else [*self.options]
        wanted = [self.passage, self.question, *columns, self.label]
        return collect(read_rows(file, wanted, self.columns), self._make)

    @property
    def _listed(self) -> str | None:
        """The column that has all options of a question; None if each has its own."""
        return self.options.removesuffix(".text") if isinstance(self.options, str) else None

    def _make(self, number: int, cells: dict[str, Any]) -> ChoiceExample:
        """The question of a row; empty options at its end are left out.

        Raises:
            ValueError: the row cannot be used; collect() leaves it out and names this reason.
        """
        passage = _text(cells, self.passage) if self.passage else ""
        question = _text(cells, self.question) if self.question else ""
        labels: Sequence[str] = LETTERS
        listed: Any = cells.get(self._listed) if self._listed else [*map(cells.get, self.options)]
        if isinstance(listed, dict):
            labels = _texts(listed.get("label"))
            listed = listed.get("text")
        options = _texts(listed)
        while options and not options[-1]:
            options.pop()
        label = _place(_text(cells, self.label), self.labels or labels)
        return _choice(str(number), passage, question, options, label)


def _choice(
    id: str, passage: str, question: str, options: Sequence[str], label: int
) -> ChoiceExample:
    if not max(FEWEST, label + 1) <= len(options) <= MOST or not all(map(str.strip, options)):
        raise ValueError(
            f"option {label + 1} of {len(options)} ({FEWEST} to {MOST} with text are read)"
        )
    return ChoiceExample(id, passage, question, tuple(options), label)


class _Passage(BaseModel):
    article: str
    questions: list[str]
    options: list[list[str]]
    answers: list[str]


class RaceFormat(Section):
    """RACE's folders: a sub-folder per level, in it a JSON file per passage with its questions.

    A folder that has all.txt alone, a passage a line, is read from it; beside others, it repeats
    them in the release.
    """

    name: Literal["race"]
    scores: ClassVar = ("accuracy",)

    def read(self, file: Path, training: bool) -> tuple[list[ChoiceExample], str]:
        """The questions of a split's folder. Their ids are level/file/number, the number from 0."""
        asked = []  # the place and the parts of each question
        for place, passage in self._passages(file):
            columns = (passage.questions, passage.options, passage.answers)
            if len({*map(len, columns)}) > 1:
                raise ConfigError(f"{place}: not as many questions as options and answers")
            name = place.relative_to(file).as_posix()
            for number, parts in enumerate(zip(*columns, strict=True)):
                id = f"{name}/{number}"
                asked.append((id, (id, passage.article, *parts)))
        return collect(
            asked, lambda _, parts: _choice(*parts[:-1], label=_place(parts[-1], LETTERS))
        )

    def _passages(self, folder: Path) -> Iterator[tuple[Path, _Passage]]:
        """The passages of a folder in the order of their paths, each with its file, or with
        all.txt:LINE.
        """
        for text in sorted(folder.rglob("*.txt"), key=Path.as_posix):
            if text.name != ALL_PASSAGES:
                yield text, files.read_json(text, _Passage)
            elif [*text.parent.glob("*.txt")] == [text]:
                for number, line in lines_of(text):
                    place = text.with_name(f"{ALL_PASSAGES}:{number}")
                    yield place, files.check(place, line.encode(), _Passage)


class _Answer(BaseModel):
    text: str
    answer_start: int


def _paired(answers: Any) -> Any:
    """Answers as `datasets` has them, a list of texts and one of starts, as SQuAD's list of
    answers.
    """
    if isinstance(answers, dict) and all(isinstance(column, list) for column in answers.values()):
        return [dict(zip(answers, row, strict=True)) for row in zip(*answers.values(), strict=True)]
    return answers


class _Question(BaseModel, coerce_numbers_to_str=True):
    id: str
    question: str
    answers: Annotated[tuple[_Answer, ...], BeforeValidator(_paired)] = ()
    # its answers, if any, are then the plausible ones, as in KLUE
    is_impossible: bool | None = None


class _Paragraph(BaseModel):
    context: str
    qas: list[_Question]


class _Article(BaseModel):
    title: str = ""
    paragraphs: list[_Paragraph]


class SquadFormat(Section):
    """Questions on contexts, of SQuAD 2.0 if unanswerable is true, else of 1.1.

    A file has the official form, articles with paragraphs, or one row per question, as `datasets`
    saves it.
    """

    name: Literal["squad"]
    unanswerable: bool = False

    @property
    def scores(self) -> tuple[str, ...]:
        return OF_SQUAD2 if self.unanswerable else OF_SQUAD1

    def read(self, file: Path, training: bool) -> tuple[list[SpanExample], str]:
        """The questions of a file, in order; for training, only those with a usable answer.

        An answer that does not stand where the file says is looked for by its text.
        """
        rows = [
            {"paragraphs": [{"context": row.get("context"), "qas": [row]}]} | row
            for _, row in read_rows(file)
        ]
        asked = []  # the place and the parts of each question
        for article in files.check(file, rows, list[_Article], SQUAD):
            for paragraph in article.paragraphs:
                for question in paragraph.qas:
                    parts = (article.title, paragraph.context, question)
                    asked.append((question.id, parts))
        issues: Issues = defaultdict(list)

        def example(_: int, parts: tuple[str, str, _Question]) -> SpanExample:
            title, context, question = parts
            given = () if question.is_impossible else question.answers
            if not given and not self.unanswerable:
                raise ValueError("no answer")
            answers = tuple(Answer(answer.text, _start_of(answer, context)) for answer in given)
            starts = {answer.start for answer in answers} - {None}
            if answers and not starts:
                if training:
                    raise ValueError("no answer stands where it says, nor at one place alone")
                issues[_NOWHERE].append(question.id)
            elif not starts <= {answer.answer_start for answer in given}:
                issues[_ELSEWHERE].append(question.id)
            return SpanExample(question.id, question.question, context, answers, not answers, title)

        return collect(asked, example, issues)


def _start_of(answer: _Answer, context: str) -> int | None:
    """The first character of an answer: where it says, in characters or in UTF-16 units, else its
    only place, or None.

    JavaScript, Java and Windows count in UTF-16 units, of which a character such as an emoji has
    two.
    """
    text = answer.text
    start = answer.answer_start
    if not text:
        return None
    if start >= 0:
        before = context.encode("utf-16-le", "surrogatepass")[: 2 * start]
        for place in (start, len(before.decode("utf-16-le", "ignore"))):
            if context.startswith(text, place):
                return place
    first = context.find(text)
    return first if first >= 0 and first == context.rfind(text) else None
