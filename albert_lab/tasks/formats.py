"""The forms of the tasks' files: a section of a task's YAML with read(), which returns examples and issues.

read(file, training) leaves out examples without a usable label. `scores` has the names of the possible scores. Readers
raise MissingDataError if a file does not exist, and ConfigError if it has another form; both name the file.
"""

import csv
import json
import math
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from albert_lab import files
from albert_lab.config.section import Section
from albert_lab.data.files import READERS, lines_of, suffixes
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import Distinct
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import Answer, ChoiceExample, Issues, SpanExample, TextExample, collect

LETTERS = tuple(string.ascii_uppercase)
SQUAD = (
    "SQuAD's form has data: [{title, paragraphs: [{context, qas}]}], that of `datasets` rows of id, context, question"
    " and answers: {text, answer_start}"
)
NUMBERS = tuple(map(str, range(len(LETTERS) + 1)))
FEWEST = 2
# Labels as written in the file; a whole number is read as its digits.
Label = Annotated[str, Field(strict=False, coerce_numbers_to_str=True)]
Labels = Annotated[tuple[Label, ...] | None, Distinct]


def read_rows(
    file: Path, wanted: Sequence[str | None] = (), columns: Sequence[str] = ()
) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a file by the end of its name: JSON, JSON Lines, CSV, parquet; any other name is tab-separated.

    Each is its place, file:number, and its values by column, none if it has more or fewer of them. In tab-separated
    files quotation marks are text, as in GLUE's.

    Args:
        wanted: columns that the file must have.
        columns: the columns of a table without a header line.

    Raises:
        MissingDataError: the file does not exist. ConfigError: it is empty, lacks a column, or has another form.
    """
    suffix = suffixes(file)[0]
    is_table = suffix in (".csv", ".tsv") or suffix not in READERS
    try:
        rows = [*(_table(file, suffix == ".csv", columns) if is_table else READERS[suffix](file))]
        rows = [(number, json.loads(row) if isinstance(row, str) else row) for number, row in rows]
        if len(rows) == 1 and isinstance(rows[0][1], dict) and isinstance(rows[0][1].get("data"), list):
            rows = [*enumerate(rows[0][1]["data"], 1)]
    except ConfigError:
        raise
    except (ValueError, RecursionError, csv.Error) as error:
        raise ConfigError(f"{file} cannot be read as {suffix or 'a table'}: {error}") from error
    if not rows:
        raise ConfigError(f"{file} has no examples")
    if others := [number for number, row in rows if not isinstance(row, dict)]:
        raise ConfigError(f"{file}:{others[0]} is no object")
    names = dict.fromkeys(name for _, cells in rows for name in cells)
    if lacking := [name for name in wanted if name and name not in names]:
        raise ConfigError(f"{file}: no column {', '.join(lacking)}; its columns: {', '.join(names)}")
    return [(f"{file.name}:{number}", cells) for number, cells in rows]


def _table(file: Path, is_csv: bool, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The cells of each line by column, none if it has more or fewer of them."""
    table: Iterator[tuple[int, list[str]]] = ((number, line.split("\t")) for number, line in lines_of(file))
    if is_csv:
        first = next((line for _, line in lines_of(file)), "")
        separator = ";" if first.count(";") > first.count(",") else ","
        reader = csv.reader((f"{line}\n" for _, line in lines_of(file)), delimiter=separator, strict=True)
        table = ((reader.line_num, row) for row in reader)
    names = columns or next(table, (0, []))[1]
    for number, cells in table:
        if not is_csv and len(cells) != len(names) and cells[-1].startswith('"') and cells[-1].count('"') % 2:
            raise ConfigError(f"{file}:{number}: a quoted cell of several lines; write it as CSV")
        yield number, dict(zip(names, cells, strict=True)) if len(cells) == len(names) else {}


def _as_text(value: Any) -> str | None:
    """A cell as text: a whole number without a decimal point; None for anything but text, numbers and booleans."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def _texts(cells: Any) -> list[str]:
    """The cells of a list as texts; none of anything else."""
    return [_as_text(cell) or "" for cell in cells] if isinstance(cells, list) else []


def _text(cells: dict[str, Any], name: str) -> str:
    """The text or number of a column, as text.

    Raises:
        ValueError: there is none.
    """
    if not cells:
        raise ValueError("more or fewer columns than in the first line")
    if (found := _as_text(cells.get(name))) is None:
        raise ValueError(f"no text in {name}")
    return found


def _place(cell: str, labels: Sequence[str]) -> int:
    """The place of a cell among labels; `2` is also `2.0`."""
    try:
        number = _as_text(float(cell))
    except ValueError:
        number = None
    for label in (cell, number):
        if label in labels:
            return labels.index(label)
    raise ValueError(f"{cell!r} is none of the labels {', '.join(labels)}")


class TableFormat(Section):
    """An example a row. columns are those of a table without a header line; label is the column of the label."""

    columns: tuple[str, ...]
    label: str
    labels: Labels


class GlueFormat(TableFormat):
    """One or two texts with a label; if labels is null, the label is a number.

    metrics are the scores, the first of which is the task's; null: accuracy, or both correlations of numbers.
    """

    name: Literal["glue"]
    text_a: str
    text_b: str | None
    metrics: Annotated[tuple[str, ...] | None, Distinct] = Field(min_length=1)

    @model_validator(mode="after")
    def _parts_fit(self) -> "GlueFormat":
        known = metrics.OF_NUMBERS if self.labels is None else metrics.OF_CLASSES[: 3 if len(self.labels) == 2 else 2]
        if unknown := [name for name in self.scores if name not in known]:
            raise ValueError(f"metrics={unknown[0]} is unknown (allowed: {', '.join(known)})")
        return self

    @property
    def scores(self) -> tuple[str, ...]:
        return self.metrics or (metrics.OF_NUMBERS if self.labels is None else ("accuracy",))

    def read(self, file: Path, training: bool) -> tuple[list[TextExample], Issues]:
        """The examples of a file. Their ids are the line numbers after the header, from 0."""
        return collect(read_rows(file, [self.text_a, self.text_b, self.label], self.columns), self._make)

    def _make(self, number: int, cells: dict[str, Any]) -> TextExample:
        text_a, text_b = _text(cells, self.text_a), _text(cells, self.text_b) if self.text_b else None
        label: str | float = _text(cells, self.label)
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
        columns = [self.options.removesuffix(".text")] if isinstance(self.options, str) else [*self.options]
        rows = read_rows(file, [self.passage, self.question, *columns, self.label], self.columns)
        parts = [self._options(columns, cells) for _, cells in rows]
        keys = {
            _as_text(row.get(self.label)) or "" for (_, row), (_, labels) in zip(rows, parts, strict=True) if not labels
        }
        numbers, letters = {key for key in keys if key[:1].isdecimal()}, keys.intersection(LETTERS)
        most = max(len(options) for options, _ in parts)
        if (numbers and letters) or numbers.intersection(NUMBERS[most:]):
            raise ConfigError(
                f"{file}: {self.label} is {', '.join(sorted(numbers | letters))}, neither a letter from A nor a number"
                f" from 0 in all rows: format.labels=[{','.join(NUMBERS[1 : most + 1])}] says that the first one is 1;"
                " or give the labels of each row's options (choices: {text: [...], label: [...]})"
            )
        usual = NUMBERS if numbers else LETTERS

        def example(number: int, cells: dict[str, Any]) -> ChoiceExample:
            passage, question = (_text(cells, name) if name else "" for name in (self.passage, self.question))
            options, labels = parts[number]
            return _choice(_text(cells, self.label), labels or usual, str(number), passage, question, options)

        return collect(rows, example)

    def _options(self, columns: list[str], cells: dict[str, Any]) -> tuple[list[str], Sequence[str]]:
        """The options of a row without empty ones at the end, and their labels, if they are given."""
        listed: Any = cells.get(columns[0]) if isinstance(self.options, str) else [*map(cells.get, columns)]
        nested = listed if isinstance(listed, dict) else {"text": listed}
        options = _texts(nested.get("text"))
        while options and not options[-1]:
            options.pop()
        return options, self.labels or _texts(nested.get("label"))


def _choice(
    label: str, labels: Sequence[str], id: str, passage: str, question: str, options: Sequence[str]
) -> ChoiceExample:
    index = _place(label, labels)
    if not max(FEWEST, index + 1) <= len(options) <= len(LETTERS):
        raise ValueError(
            f"the label is that of option {index + 1} of {len(options)} ({FEWEST} to {len(LETTERS)} are read)"
        )
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
        asked: list[tuple[str, Any]] = []
        # The release reads a folder from an additional file, all.txt, which repeats the others.
        for place in sorted((of for of in file.rglob("*.txt") if of.name != "all.txt"), key=lambda of: of.as_posix()):
            name, passage = place.relative_to(file).as_posix(), files.read_json(place, _Passage)
            parts = (passage.questions, passage.options, passage.answers)
            if len({*map(len, parts)}) > 1:
                raise ConfigError(f"{place}: as many questions as options and answers, not {[*map(len, parts)]}")
            for number, (question, options, answer) in enumerate(zip(*parts, strict=True)):
                asked.append((id := f"{name}/{number}", (answer, id, passage.article, question, options)))
        if not asked:
            raise MissingDataError(f"{file} has no passage (*.txt in one sub-folder per level)")
        return collect(asked, lambda _, parts: _choice(parts[0], LETTERS, *parts[1:]))


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Question(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    id: str
    question: str
    answers: tuple[_Answer, ...] = ()


class _Paragraph(BaseModel):
    context: str
    qas: list[_Question]


class _Article(BaseModel):
    title: str = ""
    paragraphs: list[_Paragraph]


def _of_one_question(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `datasets` as an article of SQuAD: its answers are a list of texts and one of starts."""
    answers = row.get("answers")
    if isinstance(answers, dict) and all(isinstance(of, list) for of in answers.values()):
        row = row | {
            "answers": [dict(zip(answers, pair, strict=False)) for pair in zip(*answers.values(), strict=False)]
        }
    return row | {"paragraphs": [{"context": row.get("context"), "qas": [row]}]}


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
        nested = [row if "paragraphs" in row else _of_one_question(row) for _, row in read_rows(file)]
        articles, seen = files.check(file, nested, list[_Article], SQUAD), set()
        parts = [(of.title, part) for of in articles for part in of.paragraphs]
        asked = [(one.id, (title, part.context, one)) for title, part in parts for one in part.qas]

        def example(_: int, parts: tuple[str, str, _Question]) -> SpanExample:
            title, context, question = parts
            if question.id in seen:
                raise ValueError("its id occurs twice")
            seen.add(question.id)
            if not question.answers and not self.unanswerable:
                raise ValueError("no answer")
            answers = []
            for text, start in ((answer.text, answer.answer_start) for answer in question.answers):
                is_there = text and start >= 0 and context.startswith(text, start)
                answers.append(Answer(text, start if is_there else None))
            if training and answers and all(answer.start is None for answer in answers):
                raise ValueError("no answer is in the context where it says")
            return SpanExample(question.id, question.question, context, tuple(answers), not answers, title)

        return collect(asked, example)
