"""One run as reports keep it: its record, learning curve, fine-tunings and layers in one JSON file."""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from albert_lab import files
from albert_lab.errors import DamagedFileError
from albert_lab.runs import results
from albert_lab.runs.results import RunRecord
from albert_lab.storage import write_atomically
from albert_lab.tasks.records import FinetuningRecord
from albert_lab.tasks.task import TaskConfig

FOLDER = "runs"  # of a report
REMEDY = "put it back, or run the command of the report, which writes it again"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FilledColumn(_Part):
    """A downstream column of a run's row: the task that fills it, and its fine-tunings by seed.

    metrics are those whose mean is the task's main score; official_examples and note are of the task's file.
    """

    column: str
    task: str
    title: str
    metrics: tuple[str, ...]
    official_examples: dict[str, int]
    note: str
    finetunings: tuple[FinetuningRecord, ...]


class ReportedRun(_Part):
    """Everything that a report has of a run.

    Attributes:
        record: its results.json.
        columns: the downstream columns that its fine-tunings fill.
        curve: its evaluations along the way, oldest first, as columns of a table.
        layers: what each layer changes, for each choice of tokens; empty where that was not measured.
    """

    record: RunRecord
    columns: tuple[FilledColumn, ...] = ()
    curve: tuple[dict[str, Any], ...] = ()
    layers: tuple[dict[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.record.name

    @property
    def identities(self) -> set[str]:
        """What the numbers of its fine-tunings come from (tasks.records.identity_of)."""
        return {record.identity for column in self.columns for record in column.finetunings}

    def filling(self, tasks: Mapping[str, str], identities: Collection[str]) -> "ReportedRun":
        """The run with the fine-tunings of these identities alone, in the columns that these tasks fill."""
        found = []
        for column, task in tasks.items():
            of_task = [each for each in self.columns if each.task == task]
            records = {
                record.identity: record
                for each in of_task
                for record in each.finetunings
                if record.identity in identities
            }
            if records:
                changed = {"column": column, "finetunings": tuple(records.values())}
                found.append(of_task[0].model_copy(update=changed))
        return self.model_copy(update={"columns": tuple(found)})

    def joined(self, other: "ReportedRun") -> "ReportedRun":
        """The run with what another report has of the same training: further fine-tunings, curve and layers."""
        own = self.identities
        further = [
            column.model_copy(update={"finetunings": records})
            for column in other.columns
            if (records := tuple(record for record in column.finetunings if record.identity not in own))
        ]
        changed = {"curve": self.curve or other.curve, "layers": self.layers or other.layers}
        return self.model_copy(update={"columns": (*self.columns, *further), **changed})


def filled_column(column: str, task: TaskConfig, records: Iterable[FinetuningRecord]) -> FilledColumn:
    """A column with the fine-tunings of a task."""
    return FilledColumn(
        column=column,
        task=task.name,
        title=task.title,
        metrics=task.main,
        official_examples=task.official_examples,
        note=task.note or "",
        finetunings=tuple(records),
    )


def file_of(report: Path, run: str) -> Path:
    """Where a report keeps a run."""
    return report / FOLDER / f"{run}.json"


def write(report: Path, run: ReportedRun) -> None:
    """Write a run into a report's folder, atomically: JSON with a line for each part, so that changes can be read."""
    content = run.model_dump(mode="json")
    parts = [f"{json.dumps(key)}: {_lines(value)}" for key, value in content.items()]
    file = file_of(report, run.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, "{\n" + ",\n".join(parts) + "\n}\n")


def _lines(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]"
    return json.dumps(value)


def read(file: Path) -> ReportedRun:
    """A run that a report keeps.

    Raises:
        DamagedFileError: it cannot be read, or has another run.
    """
    found = files.read_json(file, ReportedRun, REMEDY)
    if found.name != file.stem:
        raise DamagedFileError(file, f"has the run {found.name}", REMEDY)
    return found


def read_all(report: Path) -> list[ReportedRun]:
    """The runs that a report keeps, by name.

    Raises: see read().
    """
    return [read(file) for file in sorted((report / FOLDER).glob("*.json"))]


def curve(folder: Path) -> tuple[dict[str, Any], ...]:
    """The learning curve in a run folder: an entry an evaluation along the way (accuracies in percent, and losses)."""
    return tuple(
        {key: value for key, value in line.items() if key != "event"}
        for line in results.read_metrics(folder)
        if line.get("event") == "evaluation"
    )
