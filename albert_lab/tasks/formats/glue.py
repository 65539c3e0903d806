"""GLUE's tab-separated files: a line an example, predictions as `index<TAB>prediction`."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from albert_lab.config.schema import Section
from albert_lab.errors import ConfigError
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import Issue, TextExample, describe, enumerate_few
from albert_lab.tasks.formats import read_bytes

PREDICTIONS_HEADER = ["index", "prediction"]


class GlueFormat(Section):
    """Which columns of the file are read. No labels: the label is a number.

    columns are those of the official training file; they serve for files without a header line, and for writing.
    """

    name: Literal["glue"]
    columns: tuple[str, ...]
    header: bool
    text_a: str
    text_b: str | None
    label: str
    labels: tuple[str, ...] | None
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores that predictions can be given."""
        if self.labels is None:
            return tuple(metrics.OF_NUMBERS)
        return tuple(name for name in metrics.OF_CLASSES if name != "f1" or len(self.labels) == 2)

    def read(self, file: Path, labelled: bool) -> tuple[list[TextExample], list[Issue]]:
        """The examples of a file. Their ids are the numbers of its lines below the header, from 0.

        Raises:
            MissingDataError: there is no such file.
            ConfigError: it is not UTF-8, a column is missing, or no example can be used.
        """
        rows = _rows(file)
        if not rows:
            raise ConfigError(f"{file} is empty")
        has_header = self.header or self.text_a in rows[0]  # CoLA's test file has one, its other files have none
        names = rows[0] if has_header else self.columns
        self._find_columns(file, names, labelled)
        examples, issues = [], []
        for number, row in enumerate(rows[has_header:]):
            place = f"{file.name}:{number + 1 + has_header}"
            if len(row) != len(names):
                issues.append(Issue(place, f"{len(row)} columns instead of {len(names)}"))
                continue
            cells = dict(zip(names, row, strict=True))
            label = self._label(cells[self.label]) if self.label in cells else None
            if label is None and self.label in cells:
                issues.append(Issue(place, f"{self.label} is {cells[self.label]!r}, not {self._allowed()}"))
            if label is not None or not labelled:
                text_b = cells[self.text_b] if self.text_b else None
                examples.append(TextExample(str(number), cells[self.text_a], text_b, label))
        if not examples:
            raise ConfigError(f"{file}: no example can be used: {describe(issues) or 'it has none'}")
        return examples, issues

    def write(self, examples: Sequence[TextExample], file: Path) -> None:
        """Writes the official columns, or index and texts where no example has a label, as in the test files.

        Cells of which an example knows nothing stay empty; tabs and line ends within a text become spaces.
        """
        labelled = any(example.label is not None for example in examples)
        texts = [self.text_a, *([self.text_b] if self.text_b else [])]
        names = list(self.columns) if labelled else ["index", *texts]
        rows = [names] if self.header or not labelled else []
        for number, example in enumerate(examples):
            cells = {
                "index": str(number),
                "id": str(number),
                self.label: "" if example.label is None else str(example.label),
            }
            cells |= zip(texts, [example.text_a, example.text_b or ""], strict=False)
            rows.append([re.sub(r"[\t\r\n]+", " ", cells.get(name, "")) for name in names])
        _write_rows(file, rows)

    def read_predictions(self, file: Path) -> dict[str, str | float]:
        """Predicted labels by example id from a submission file.

        Raises:
            MissingDataError: there is no such file.
            ConfigError: no header line, a line that does not have two columns, an index that stands twice, or a
                prediction that is no label of the task.
        """
        rows = _rows(file)
        if not rows or [name.lower() for name in rows[0]] != PREDICTIONS_HEADER:
            raise ConfigError(f"{file}:1: the first line must be {'<TAB>'.join(PREDICTIONS_HEADER)}")
        predictions: dict[str, str | float] = {}
        wrong = []
        for line, row in enumerate(rows[1:], 2):
            if len(row) != 2:
                raise ConfigError(f"{file}:{line}: {len(row)} columns instead of 2")
            if row[0] in predictions:
                raise ConfigError(f"{file}:{line}: index {row[0]} stands twice")
            label = self._label(row[1])
            if label is None:
                wrong.append(f"line {line}: {row[1]}")
            else:
                predictions[row[0]] = label
        if wrong:
            raise ConfigError(f"{file}: predictions that are not {self._allowed()}: {enumerate_few(wrong)}")
        return predictions

    def write_predictions(self, predictions: Mapping[str, str | float], file: Path) -> None:
        """Writes predicted labels by example id as a submission file."""
        _write_rows(file, [PREDICTIONS_HEADER, *([id, str(label)] for id, label in predictions.items())])

    def _find_columns(self, file: Path, names: Sequence[str], labelled: bool) -> None:
        wanted = [self.text_a, self.text_b, self.label if labelled else None]
        missing = [name for name in wanted if name and name not in names]
        if missing:
            raise ConfigError(f"{file}: no column {', '.join(missing)}; its columns: {', '.join(names)}")

    def _label(self, text: str) -> str | float | None:
        if self.labels is not None:
            return text if text in self.labels else None
        try:
            number = float(text)
        except ValueError:
            return None
        return number if math.isfinite(number) else None

    def _allowed(self) -> str:
        return "a number" if self.labels is None else f"one of {', '.join(self.labels)}"


def _rows(file: Path) -> list[list[str]]:
    """Cells of each line. Quotation marks are text; only a line feed ends a line."""
    content = read_bytes(file)
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file}:{line}: not UTF-8 (byte 0x{content[error.start]:02x})") from error
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r").split("\t") for line in lines]


def _write_rows(file: Path, rows: Iterable[Sequence[str]]) -> None:
    file.write_bytes("".join("\t".join(row) + "\n" for row in rows).encode())
