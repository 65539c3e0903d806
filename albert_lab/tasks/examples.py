"""The examples of tasks, one class a kind, and the rows of the files that have them."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from albert_lab.data.files import lines_of, suffixes
from albert_lab.errors import ConfigError, MissingDataError

T = TypeVar("T")
# The choice of examples does not depend on the seed of a fine-tuning, so that seeds differ only by chance.
_SUBSAMPLE_SEED = 2020
JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class TextExample:
    """One or two texts and the label: the name of a class, or a number."""

    id: str
    text_a: str
    text_b: str | None
    label: str | float

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts; of every kind, examples with the same first text belong together."""
        return self.text_a, self.text_b or ""


class Answer(NamedTuple):
    """A gold answer and its first character in the context; None if the answer is not there."""

    text: str
    start: int | None


@dataclass(frozen=True, slots=True)
class SpanExample:
    """A question about a context; without answers, it is unanswerable."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    is_impossible: bool
    title: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.context,)


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question about a passage, its options, and the index of the right one."""

    id: str
    passage: str
    question: str
    options: tuple[str, ...]
    label: int

    @property
    def texts(self) -> tuple[str, ...]:
        return self.passage or self.question, self.question, *self.options


# What is wrong with examples that were left out: their ids, or file:line without one, by reason.
Issues = dict[str, list[str]]


def collect(rows: Iterable[tuple[str, Any]], make: Callable[[int, Any], T]) -> tuple[list[T], Issues]:
    """The examples that `make` can make of numbered rows, given by place and content; an issue for each ValueError."""
    examples, issues = [], {}
    for number, (place, content) in enumerate(rows):
        try:
            examples.append(make(number, content))
        except ConfigError:  # of the whole file
            raise
        except ValueError as error:
            issues.setdefault(str(error), []).append(place)
    return examples, issues


def describe(issues: Issues) -> str:
    """One line: each reason with its count and the first examples, as in `no answer: 5 (a, b, c, ...)`."""
    shown = {reason: ", ".join(places[:3]) + ", ..." * (len(places) > 3) for reason, places in issues.items()}
    return "; ".join(f"{reason}: {len(issues[reason])} ({places})" for reason, places in shown.items())


def subsample(examples: Sequence[T], size: int | None) -> list[T]:
    """A fixed subsample of `size` examples, in order; all examples if size is None."""
    if size is None or size >= len(examples):
        return list(examples)
    rng = np.random.Generator(np.random.Philox(key=_SUBSAMPLE_SEED))
    return [examples[index] for index in np.sort(rng.permutation(len(examples))[:size])]


def read_rows(
    file: Path, wanted: Sequence[str | None] = (), columns: Sequence[str] = (), header: bool = True
) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a file by the end of its name: JSON, JSON Lines, CSV, parquet; any other name is tab-separated.

    Each is its place, file:line, and its values by column, none if it has more or fewer of them. Objects in JSON have
    their keys as columns too, as in `choices.text`. In tab-separated files quotation marks are text, as in GLUE's.

    Args:
        wanted: columns that the file must have.
        columns: the columns of a table without a header line.
        header: whether the first line of a table is a header line.

    Raises:
        MissingDataError: the file does not exist. ConfigError: it is empty, lacks a column, or has another form.
    """
    suffix = suffixes(file)[0]
    try:
        rows: Iterable[tuple[int, Any]]
        if suffix == ".parquet":
            rows = enumerate(_parquet(file), 1)
        elif suffix in JSON_LINES:
            rows = ((number, json.loads(line)) for number, line in lines_of(file))
        elif suffix == ".json":
            content = json.loads("\n".join(line for _, line in lines_of(file)))
            rows = enumerate(content.get("data", ()) if isinstance(content, dict) else content, 1)
        else:
            rows = _table(file, suffix == ".csv", columns, header)
        named = [(f"{file.name}:{number}", _flat(row)) for number, row in rows]
    except ConfigError:
        raise
    except (ValueError, TypeError, RecursionError, OSError, csv.Error) as error:
        raise ConfigError(f"{file} cannot be read as {suffix or 'a table'}: {error}") from error
    names = dict.fromkeys(name for _, cells in named for name in cells)
    if not named:
        raise ConfigError(f"{file} has no examples")
    if lacking := [name for name in wanted if name and name not in names]:
        raise ConfigError(f"{file}: no column {', '.join(lacking)}; its columns: {', '.join(names)}")
    return named


def _flat(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ValueError(f"{json.dumps(row)[:40]} is no object")
    inner = {f"{name}.{key}": value for name, of in row.items() if isinstance(of, dict) for key, value in of.items()}
    return row | inner


def _parquet(file: Path) -> list[dict[str, Any]]:
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingDataError(f"{file} needs the package datasets: pip install 'albert-lab[hub]'") from error
    return Dataset.from_parquet(str(file)).to_list()  # pyright: ignore[reportAttributeAccessIssue]


def _table(file: Path, is_csv: bool, columns: Sequence[str], header: bool) -> Iterator[tuple[int, dict[str, str]]]:
    """The cells of each line by column, none if it has more or fewer of them."""
    first = next((line for _, line in lines_of(file)), "")
    if is_csv:
        lines = (f"{line}\n" for _, line in lines_of(file))
        reader = csv.reader(lines, delimiter=";" if first.count(";") > first.count(",") else ",", strict=True)
        table = ((reader.line_num, row) for row in reader)
    else:
        table = ((number, line.split("\t")) for number, line in lines_of(file))
    names = next(table, (0, []))[1] if header else list(columns)
    for number, cells in table:
        if len(cells) == len(names):
            yield number, dict(zip(names, cells, strict=True))
            continue
        if not is_csv and cells[-1].startswith('"') and cells[-1].count('"') % 2:
            raise ConfigError(
                f'{file}:{number}: a quoted cell of several lines; write it as CSV: python -c "import pandas as p;'
                " p.read_csv('IN.tsv', sep='\\t').to_csv('OUT.csv', index=False)\""
            )
        yield number, {}


def as_text(value: Any) -> str | None:
    """A cell as text: a whole number without a decimal point; None for anything but text, numbers and booleans."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def text(cells: dict[str, Any], name: str) -> str:
    """The text or number of a column, as text.

    Raises:
        ValueError: there is none.
    """
    if not cells:
        raise ValueError("more or fewer columns than in the first line")
    if (found := as_text(cells.get(name))) is None:
        raise ValueError(f"no text in {name}")
    return found
