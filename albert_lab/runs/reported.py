"""One run in a report: its record, learning curve, fine-tunings and layers in one JSON file."""

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


class _ReportPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FilledColumn(_ReportPart):
    """A downstream column of a run's row: the task that fills it, and its fine-tunings by seed.

    The task's main score is the mean of metrics; official_examples and note come from the task's file.
    """

    column: str
    task: str
    title: str
    metrics: tuple[str, ...]
    official_examples: dict[str, int]
    note: str
    finetunings: tuple[FinetuningRecord, ...]


class ReportedRun(_ReportPart):
    """All data of a run in a report.

    Attributes:
        record: its results.json.
        columns: the downstream columns that its fine-tunings fill.
        curve: its evaluations during training, oldest first, as rows of a table.
        layers: the change by each layer, for each choice of tokens; empty if not measured.
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
        """The identities of its fine-tunings (tasks.records.identity_of)."""
        return {record.identity for column in self.columns for record in column.finetunings}

    def filling(self, tasks: Mapping[str, str], identities: Collection[str]) -> "ReportedRun":
        """The run with only the fine-tunings of these identities, in the columns that these tasks fill."""
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
        """The run, completed from another report of the same training: further fine-tunings, curve and layers."""
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
    """The file of a run in a report."""
    return report / FOLDER / f"{run}.json"


def write(report: Path, run: ReportedRun) -> None:
    """Write a run into a report's folder, atomically: JSON with one line per part, so that diffs are readable."""
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
    """A run from its file in a report.

    Raises:
        DamagedFileError: it cannot be read, or contains another run.
    """
    found = files.read_json(file, ReportedRun, REMEDY)
    if found.name != file.stem:
        raise DamagedFileError(file, f"has the run {found.name}", REMEDY)
    return found


def read_all(report: Path) -> list[ReportedRun]:
    """The runs of a report, sorted by name.

    Raises: see read().
    """
    return [read(file) for file in sorted((report / FOLDER).glob("*.json"))]


def curve(folder: Path) -> tuple[dict[str, Any], ...]:
    """The learning curve in a run folder: one entry per evaluation during training, with accuracies in percent."""
    return tuple(
        {key: value for key, value in line.items() if key != "event"}
        for line in results.read_metrics(folder)
        if line.get("event") == "evaluation"
    )
