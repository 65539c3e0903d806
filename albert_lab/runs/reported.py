"""One run in a report: its record, learning curve, fine-tunings and layers in one JSON file."""

import json
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Annotated

from pydantic import Field, model_validator

from albert_lab import files
from albert_lab.config.section import having
from albert_lab.errors import DamagedFileError
from albert_lab.files import Record, Signed, check_distinct
from albert_lab.runs import results
from albert_lab.runs.results import RunRecord
from albert_lab.score import Score, loss_name
from albert_lab.storage import write_atomically
from albert_lab.tasks.records import FinetuningRecord, summarize
from albert_lab.training.layers import Layer, layer_numbers

FOLDER = "runs"  # of a report
REMEDY = "put it back, or run the command of the report, which writes it again"
# The mean of the paper's five tasks: the last column of its tables.
AVERAGE = "average"
AVERAGED = ("squad1", "squad2", "mnli", "sst2", "race")


# An evaluation during training: its step and training_seconds, and its scores in percent, their n
# and losses by name.
CurvePoint = Annotated[dict[str, int | float | None], having("step", "training_seconds")]


class FilledColumn(Record, extra="ignore"):  # records from before say more of the task
    """A downstream column of a run's row: the task that fills it, and its fine-tunings by seed."""

    task: str
    title: str
    finetunings: Annotated[tuple[FinetuningRecord, ...], Field(min_length=1)]

    @property
    def is_random(self) -> bool:
        """Whether it has fine-tunings of random weights of the run's shape."""
        return self.finetunings[0].weights == "random"

    @cached_property
    def score(self) -> Score:
        """The median over fine-tuning seeds, of the best checkpoint on dev."""
        return summarize(self.finetunings)

    @cached_property
    def parts(self) -> dict[str, float]:
        """The median of every score of a task that has several, by its column: task and score, as
        squad1_f1.
        """
        names = self.finetunings[0].best.scores
        return {
            f"{self.task}_{name}": median(
                record.best.scores[name].value for record in self.finetunings
            )
            for name in (names if len(names) > 1 else ())
        }


class ReportedRun(Signed):
    """All data of a run in a report.

    Attributes:
        record: its results.json.
        columns: the downstream columns that its fine-tunings fill.
        curve: its evaluations during training, oldest first.
        layers: the change by each layer, for each choice of tokens; empty if not measured.
    """

    SIGNED = frozenset({"curve", "layers"})

    record: RunRecord
    columns: tuple[FilledColumn, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    layers: tuple[Layer, ...] = ()

    @model_validator(mode="after")
    def _has_its_finetunings(self) -> "ReportedRun":
        for column in self.columns:
            check_distinct([record.seed for record in column.finetunings])
            for record in column.finetunings:
                if record.task != column.task or not (record.run == self.name or column.is_random):
                    raise ValueError(
                        f"a fine-tuning on {record.task} of {record.run} is in the column "
                        f"{column.task}"
                    )
        return self

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def seed(self) -> int:
        return self.record.config.seed

    @property
    def pretrained(self) -> list[FilledColumn]:
        """The columns of its own weights."""
        return [column for column in self.columns if not column.is_random]

    @cached_property
    def scores(self) -> dict[str, Score]:
        """Its scores: those on held-out text by their names, those of fine-tuned tasks by the names
        of the tasks.
        """
        return self.record.scores | {column.task: column.score for column in self.pretrained}

    @cached_property
    def shown_curve(self) -> tuple[CurvePoint, ...]:
        """Its curve up to the end of training, where the scores of the record stand, as they do in
        every table.

        The points before have fewer answers. Empty if nothing was evaluated during training; a
        score that was not evaluated then has no end either.
        """
        if not self.curve:
            return ()
        training = self.record.training
        known = {name for point in self.curve for name, value in point.items() if value is not None}
        end: CurvePoint = {
            "step": training.steps,
            "training_seconds": training.training_seconds,
            "share": self.record.config.budget.stop_at,
            "tokens": training.tokens,
        }
        for name, score in self.record.scores.items():
            if name in known:
                end |= {name: score.value, f"{name}_n": score.n, loss_name(name): score.loss}
        return (*(point for point in self.curve if (point["step"] or 0) < training.steps), end)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Every number that a table, a claim or a figure can be about, by name; what the run lacks
        is left out.
        """
        record = self.record
        numbers: dict[str, float | None] = {
            name: score.value for name, score in self.scores.items()
        }
        numbers |= {loss_name(name): score.loss for name, score in record.scores.items()}
        for column in self.pretrained:
            numbers |= column.parts
        if self.scores.keys() >= {*AVERAGED}:
            numbers[AVERAGE] = fmean(self.scores[column].value for column in AVERAGED)
        numbers |= {
            "parameters": record.parameters["total"],
            "encoder_parameters": record.parameters["encoder"],
            "train_flops_per_token": record.train_flops_per_token,
            **record.training.model_dump(),
        }
        if record.provenance.jobs != 1:  # other runs slowed it, or its record does not say
            numbers |= {"tokens_per_second": None, "inference_tokens_per_second": None}
        numbers |= layer_numbers(self.layers, record.config.model.hidden_size)
        return {name: float(value) for name, value in numbers.items() if value is not None}


def file_of(report: Path, run: str) -> Path:
    return report / FOLDER / f"{run}.json"


def write(report: Path, run: ReportedRun) -> None:
    """Write a run into a report's folder, atomically: a line of JSON a part, with ten digits."""
    content = json.loads(
        run.signed().model_dump_json(), parse_float=lambda text: float(files.ten_digits(text))
    )
    # its file may be in a folder of this machine alone
    tokenizer = content["record"]["config"]["tokenizer"]
    tokenizer["model_file"] = tokenizer["model_file"] and Path(tokenizer["model_file"]).name
    parts = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
    write_atomically(file_of(report, run.name), "{\n" + ",\n".join(parts) + "\n}\n")


def read(report: Path, name: str) -> ReportedRun:
    """A run in a report's folder.

    Raises:
        DamagedFileError: its file is missing, cannot be read, or is that of another run.
    """
    file = file_of(report, name)
    run = files.read_json(file, ReportedRun, REMEDY)
    if run.name != name:
        raise DamagedFileError(file, f"is the record of {run.name}", REMEDY)
    return run


def curve(folder: Path) -> tuple[CurvePoint, ...]:
    """The evaluations in the log of a run; DamagedFileError if one of them lacks a number."""
    lines = [line for line in results.read_metrics(folder) if line["event"] == "evaluation"]
    for line in lines:
        del line["event"]
    return files.check(folder / results.METRICS, lines, tuple[CurvePoint, ...], results.REMEDY)
