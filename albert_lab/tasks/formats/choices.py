"""Questions with any number of options, one per line (tab-separated or JSON); predictions as id -> letter."""

import string
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import model_validator

from albert_lab.tasks.examples import ChoiceExample, Issue
from albert_lab.tasks.formats import usable
from albert_lab.tasks.formats.letters import LettersFormat
from albert_lab.tasks.formats.rows import Labels, TaskRow, check_columns, read_rows, write_rows

LETTERS = tuple(string.ascii_uppercase)
FEWEST = 2
GUESSED = 4  # options per question, for estimates


class ChoicesFormat(LettersFormat):
    """The columns of the file that are read.

    passage and question are null if the file has no such column. options has one column per option, of which the last
    may be empty, or the one column of a JSON Lines file with a list of options. labels are the values of the label in
    the order of options; null: letters from A, or numbers from 0. columns are those of a file without a header line.
    """

    name: Literal["choices"]
    columns: tuple[str, ...]
    header: bool
    passage: str | None
    question: str | None
    options: str | tuple[str, ...]
    label: str
    labels: Labels
    letters: ClassVar[tuple[str, ...]] = LETTERS

    @property
    def sequences(self) -> int:
        """Number of options of a question; an estimate if it depends on the file."""
        return GUESSED if isinstance(self.options, str) else len(self.options)

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
        names, rows = read_rows(file, self.columns, self.header, texts[0])
        check_columns(file, names, [*texts, *named, self.label if labelled else None])
        examples, issues = [], []
        for row in rows:
            options = self._options(row)
            absent = [name for name in texts if row.text(name) is None]
            flaw = row.flaw or (f"no text in {absent[0]}" if absent else "")
            if not flaw and not FEWEST <= len(options) <= len(LETTERS):
                flaw = f"{len(options)} options"
            if flaw:
                issues.append(Issue(row.place, flaw))
                continue
            cell = row.text(self.label)
            label = None if cell is None else self._index(cell, len(options))
            if label is None and self.label in names:
                issues.append(Issue(row.place, f"{self.label} is {cell!r}, none of the {len(options)} options"))
            if label is not None or not labelled:
                passage, question = row.text(self.passage) or "", row.text(self.question) or ""
                examples.append(ChoiceExample(str(row.number), passage, question, options, label))
        return usable(file, examples, issues)

    def write(self, examples: Sequence[ChoiceExample], file: Path) -> None:
        """Writes the columns that are read, with a header line if the file is tab-separated."""
        texts = {self.passage: "passage", self.question: "question"}
        named = self.options if isinstance(self.options, tuple) else (self.options,)
        rows = []
        for example in examples:
            row = {name: getattr(example, key) for name, key in texts.items() if name}
            row |= zip(named, [example.options] if isinstance(self.options, str) else example.options, strict=False)
            if example.label is not None:
                row[self.label] = (self.labels or LETTERS)[example.label]
            rows.append(row)
        write_rows(file, [*(name for name in texts if name), *named, self.label], rows, header=True)

    def _options(self, row: TaskRow) -> tuple[str, ...]:
        if isinstance(self.options, str):
            options = row.cells.get(self.options, ())
            return options if isinstance(options, tuple) else ()
        texts = [row.text(name) or "" for name in self.options]
        while texts and not texts[-1]:
            texts.pop()
        return tuple(texts)

    def _index(self, text: str, count: int) -> int | None:
        if self.labels is not None:
            index = self.labels.index(text) if text in self.labels else count
        elif text.isdecimal() and text.isascii():
            index = int(text[:3])
        else:
            index = LETTERS.index(text) if text in LETTERS else count
        return index if index < count else None
