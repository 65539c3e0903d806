"""One or two texts with a label, one example per line (tab-separated as in GLUE, or JSON); predictions as TSV."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from albert_lab.config.section import Section
from albert_lab.errors import ConfigError
from albert_lab.tasks import metrics
from albert_lab.tasks.examples import Issue, TextExample, enumerate_few
from albert_lab.tasks.formats import usable
from albert_lab.tasks.formats.rows import (
    JSON_LINES,
    Labels,
    check_columns,
    read_lines,
    read_rows,
    write_cells,
    write_rows,
)

PREDICTIONS_HEADER = ["index", "prediction"]


class GlueFormat(Section):
    """The columns of the file that are read. If labels is null, the label is a number.

    columns are those of the official training file; they are used for files without a header line and for writing. A
    file whose name ends in .jsonl has one JSON object per line instead.
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
        names, rows = read_rows(file, self.columns, self.header, self.text_a)
        check_columns(file, names, [self.text_a, self.text_b, self.label if labelled else None])
        examples, issues = [], []
        for row in rows:
            text_a, text_b = row.text(self.text_a), row.text(self.text_b)
            if text_a is None or (text_b is None and self.text_b):
                absent = self.text_a if text_a is None else self.text_b
                issues.append(Issue(row.place, row.flaw or f"no text in {absent}"))
                continue
            cell = row.text(self.label)
            label = None if cell is None else self._label(cell)
            if label is None and self.label in names:
                issues.append(Issue(row.place, f"{self.label} is {cell!r}, not {self._allowed()}"))
            if label is not None or not labelled:
                examples.append(TextExample(str(row.number), text_a, text_b, label))
        return usable(file, examples, issues, "example")

    def write(self, examples: Sequence[TextExample], file: Path) -> None:
        """Writes the official columns, or index and texts if no example has a label, as in the test files.

        Unknown cells are empty.
        """
        texts = {self.text_a: "text_a"} | ({self.text_b: "text_b"} if self.text_b else {})
        rows: list[dict[str, object]] = []
        for number, example in enumerate(examples):
            cells = {"index": number, "id": number, self.label: example.label}
            cells |= {name: getattr(example, key) for name, key in texts.items()}
            rows.append({name: cell for name, cell in cells.items() if cell is not None})
        if file.suffix == JSON_LINES:
            write_rows(file, [*texts, self.label], rows, header=False)
        elif any(example.label is not None for example in examples):
            write_rows(file, self.columns, rows, header=self.header)
        else:
            write_rows(file, ["index", *texts], rows, header=True)

    def read_predictions(self, file: Path) -> dict[str, str | float]:
        """Predicted labels by example id from a submission file.

        There must be a header line, two columns in each line, and a label of the task for every index.
        """
        rows = [line.split("\t") for line in read_lines(file)]
        if not rows or [name.lower() for name in rows[0]] != PREDICTIONS_HEADER:
            raise ConfigError(f"{file}:1: the first line must be {'<TAB>'.join(PREDICTIONS_HEADER)}")
        predictions: dict[str, str | float] = {}
        wrong = []
        for line, row in enumerate(rows[1:], 2):
            if len(row) != 2:
                raise ConfigError(f"{file}:{line}: {len(row)} columns instead of 2")
            if row[0] in predictions:
                raise ConfigError(f"{file}:{line}: index {row[0]} occurs twice")
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
        write_cells(file, [PREDICTIONS_HEADER, *([id, str(label)] for id, label in predictions.items())])

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
