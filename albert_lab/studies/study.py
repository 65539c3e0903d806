"""The data of a report, as files in its folder: the experiment, its points, its runs and its ensembles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from omegaconf import OmegaConf
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from albert_lab import files
from albert_lab.errors import ConfigError
from albert_lab.naming import check_name
from albert_lab.runs import reported, tables
from albert_lab.runs.reported import REMEDY, ReportedRun
from albert_lab.runs.results import RunRecord
from albert_lab.storage import write_atomically
from albert_lab.studies import side_by_side
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.experiment import read as read_experiment
from albert_lab.studies.side_by_side import SideBySide
from albert_lab.studies.table import Row, axes_of, rows

EXPERIMENT, STUDY = "experiment.yaml", "study.json"
_OF_EVERY_POINT = ("seed", "run", "state", "scale", "corpus", "command")
_NAMES = ("run", "scale", "corpus")  # of files and folders


def _check_point(point: dict[str, str | int]) -> dict[str, str | int]:
    if missing := [key for key in _OF_EVERY_POINT if key not in point]:
        raise ValueError(f"{missing[0]} is missing")
    for key in _NAMES:
        check_name(str(point[key]))
    return point


class _StudyFile(BaseModel):
    """The content of study.json."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    points: list[Annotated[dict[str, str | int], AfterValidator(_check_point)]] = Field(min_length=1)
    ensembles: list[dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """An experiment with its results.

    Attributes:
        experiment: the experiment.
        points: one line per point: each axis, `paper_<axis>`, seed, run, state, the reason if it is missing, the
            fine-tunings that failed, scale, corpus and command.
        runs: the finished runs.
        ensembles: one line per task whose fine-tunings were averaged.
        throughput: that of its rows, measured side by side; None if it was not measured.
    """

    experiment: Experiment
    points: pd.DataFrame
    runs: Sequence[ReportedRun]
    ensembles: Sequence[dict[str, Any]] = ()
    throughput: SideBySide | None = None

    @cached_property
    def results(self) -> pd.DataFrame:
        """The table of runs."""
        return pd.DataFrame([tables.row(run) for run in self.runs])

    @cached_property
    def curves(self) -> pd.DataFrame:
        """One line per run and evaluation during training."""
        return self._table(tables.curve)

    @cached_property
    def finetunings(self) -> pd.DataFrame:
        """One line per run and fine-tuning."""
        return self._table(tables.finetunings)

    @cached_property
    def layers(self) -> pd.DataFrame:
        """One line per run, choice of tokens and layer; empty if none were measured."""
        return self._table(tables.layers)

    def _table(self, lines: Callable[[ReportedRun], list[dict[str, Any]]]) -> pd.DataFrame:
        return pd.DataFrame([line for run in self.runs for line in lines(run)])

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of its table."""
        found = rows(self.experiment, self.points, self.results)
        return side_by_side.attached(found, self.throughput) if self.throughput else found

    @property
    def examples(self) -> list[RunRecord]:
        """The record of the first run of each row that has runs; rows of the same runs have one together."""
        first = dict.fromkeys(row.runs[0]["run"] for row in self.rows if row.runs)
        records = {run.name: run.record for run in self.runs}
        return [records[name] for name in first]

    @property
    def axes(self) -> list[str]:
        """The axes of its table."""
        return axes_of(self.experiment, self.points)

    @property
    def scale(self) -> str:
        """The scale of its points."""
        return str(self.points["scale"].iloc[0])

    @property
    def corpus(self) -> str:
        """The corpus of its points."""
        return str(self.points["corpus"].iloc[0])


def write(folder: Path, study: Study) -> None:
    """Write a study into a report's folder: experiment.yaml, study.json, and one file per run in runs/.

    Files of other runs, from a previous report, are removed. A measurement of throughput stays in the folder.
    """
    for run in study.runs:
        reported.write(folder, run)
    content = study.experiment.model_dump(mode="json", exclude={"name"})
    write_atomically(folder / EXPERIMENT, OmegaConf.to_yaml(OmegaConf.create(content)))
    found = _StudyFile(points=study.points.to_dict("records"), ensembles=list(study.ensembles))
    write_atomically(folder / STUDY, found.model_dump_json(indent=1) + "\n")
    kept = {reported.file_of(folder, run.name) for run in study.runs}
    for file in (folder / reported.FOLDER).glob("*.json"):
        if file not in kept and file.is_file():
            file.unlink()


def write_tables(folder: Path, study: Study) -> None:
    """Write the tables of a study into a report's folder as CSV files, for spreadsheets; no command reads them."""
    found = {
        "points": study.points,
        "results": study.results,
        "curves": study.curves,
        "finetuning": study.finetunings,
        "layers": study.layers,
        "ensembles": pd.DataFrame(study.ensembles),
    }
    for name, table in found.items():
        file = folder / f"{name}.csv"
        if table.empty:
            file.unlink(missing_ok=True)
        else:
            write_atomically(file, files.csv_text(table))


def read(folder: Path) -> Study:
    """The study in a report's folder, its runs in the order of its points.

    Raises:
        ConfigError: not a report folder, or a file cannot be read.
    """
    if not (folder / STUDY).is_file():
        raise ConfigError(f"{folder} is no report: it has no {STUDY} beside {EXPERIMENT}")
    content = files.read_json(folder / STUDY, _StudyFile, REMEDY)
    order = {str(point["run"]): place for place, point in enumerate(content.points)}
    runs = sorted(reported.read_all(folder), key=lambda run: order.get(run.name, len(order)))
    experiment, points = read_experiment(folder / EXPERIMENT), pd.DataFrame(content.points)
    return Study(experiment, points, runs, content.ensembles, side_by_side.read(folder))


def ensembles_of(folder: Path) -> list[dict[str, Any]]:
    """The ensembles of a report; empty if there is no report.

    Raises:
        DamagedFileError: its file cannot be read.
    """
    file = folder / STUDY
    return files.read_json(file, _StudyFile, REMEDY).ensembles if file.is_file() else []
