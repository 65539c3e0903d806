"""The data of a report, as files in its folder: the experiment, its points, its runs and its ensembles."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from omegaconf import OmegaConf
from pydantic import BeforeValidator, Field, PlainSerializer

from albert_lab import files
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.naming import Name
from albert_lab.record import Record
from albert_lab.runs import reported
from albert_lab.runs.reported import REMEDY, ReportedRun
from albert_lab.storage import write_atomically
from albert_lab.studies.claims import number_in
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.experiment import read as read_experiment

EXPERIMENT, STUDY = "experiment.yaml", "study.json"
_PAPER = "paper_"


class StudyPoint(Record):
    """A point that was asked for: values by axis as run here, labels by axis as in the paper, and what became of it.

    reason says why the run is missing, failed_tasks which of its fine-tunings are.
    """

    values: dict[str, str]
    labels: dict[str, str]
    seed: int
    run: Name
    state: str
    reason: str = ""
    failed_tasks: str = ""
    scale: Name
    corpus: Name
    command: str

    def as_columns(self) -> dict[str, str | int]:
        """The point as one flat line: each axis, `paper_<axis>`, and the rest."""
        papers = {f"{_PAPER}{axis}": label for axis, label in self.labels.items()}
        return self.values | papers | self.model_dump(exclude={"values", "labels"})


def _of_columns(columns: Any) -> Any:
    """The fields of a point from its flat line in a file."""
    if not isinstance(columns, Mapping):
        return columns
    axes = [str(key).removeprefix(_PAPER) for key in columns if str(key).startswith(_PAPER)]
    if lacking := [axis for axis in axes if axis not in columns]:
        raise ValueError(f"{lacking[0]} is missing")
    values, labels = ({axis: str(columns[prefix + axis]) for axis in axes} for prefix in ("", _PAPER))
    known = {*axes, *(_PAPER + axis for axis in axes)}
    return {key: value for key, value in columns.items() if key not in known} | {"values": values, "labels": labels}


class EnsembleLine(Record):
    """An ensemble of the fine-tunings of one run on a task, with their median; scores in percent, on dev.

    metrics are the scores whose mean single and ensemble are; members are the main scores of those that were averaged.
    """

    column: str
    task: str
    title: str
    metrics: tuple[str, ...]
    run: Name
    row: str
    seed: int
    n: int
    finetunings: int
    single: float
    single_scores: dict[str, float]
    members: tuple[float, ...]
    ensemble: float
    ensemble_scores: dict[str, float]


class _StudyFile(Record):
    """The content of study.json."""

    points: list[
        Annotated[StudyPoint, BeforeValidator(_of_columns), PlainSerializer(lambda point: point.as_columns())]
    ] = Field(min_length=1)
    ensembles: list[EnsembleLine]


@dataclass(frozen=True)
class Study:
    """An experiment with its results.

    Attributes:
        points: the points that were asked for.
        runs: the finished runs.
        ensembles: one line per task whose fine-tunings were averaged.
    """

    experiment: Experiment
    points: Sequence[StudyPoint]
    runs: Sequence[ReportedRun]
    ensembles: Sequence[EnsembleLine] = ()

    @property
    def axes(self) -> list[str]:
        """The axes of its table: the experiment's, then those that the command line added."""
        asked, own = self.points[0].labels, self.experiment.axes
        return [axis for axis in own if axis in asked] + [axis for axis in asked if axis not in own]

    @property
    def scale(self) -> str:
        return self.points[0].scale

    @property
    def corpus(self) -> str:
        return self.points[0].corpus


def write(folder: Path, study: Study) -> None:
    """Write a study into a report's folder: experiment.yaml, study.json, and one file per run in runs/.

    Files of other runs, from a previous report, are removed.
    """
    for run in study.runs:
        reported.write(folder, run)
    content = study.experiment.model_dump(mode="json", exclude={"name"})
    if "own_tasks" in content:  # its records have all that a report needs of a task
        content["own_tasks"] = {name: Path(file).name for name, file in study.experiment.own_tasks.items()}
    write_atomically(folder / EXPERIMENT, OmegaConf.to_yaml(OmegaConf.create(content)))
    _write(folder, study.points, study.ensembles)
    kept = {reported.file_of(folder, run.name) for run in study.runs}
    for file in (folder / reported.FOLDER).glob("*.json"):
        if file not in kept and file.is_file():
            file.unlink()


def _write(folder: Path, points: Sequence[StudyPoint], ensembles: Sequence[EnsembleLine]) -> None:
    content = _StudyFile.model_construct(points=list(points), ensembles=list(ensembles))
    write_atomically(folder / STUDY, content.model_dump_json(indent=1) + "\n")


def read(folder: Path) -> Study:
    """The study in a report's folder, its runs in the order of its points.

    Raises:
        ConfigError: not a report folder, or a file cannot be read.
    """
    if not (folder / STUDY).is_file():
        raise ConfigError(f"{folder} is no report: it has no {STUDY} beside {EXPERIMENT}")
    content = files.read_json(folder / STUDY, _StudyFile, REMEDY)
    axes = {(*point.labels,) for point in content.points}
    if len(axes) > 1:
        raise DamagedFileError(folder / STUDY, "its points have different axes", REMEDY)
    order = {point.run: place for place, point in enumerate(content.points)}
    runs = sorted(reported.read_all(folder), key=lambda run: order.get(run.name, len(order)))
    experiment = read_experiment(folder / EXPERIMENT)
    for point in content.points:
        if wrong := next((axis for axis in point.labels if not _is_labelled(point, axis, experiment)), None):
            row = f"{wrong}={point.labels[wrong]} is no label of {wrong}={point.values[wrong]} in {EXPERIMENT}"
            raise DamagedFileError(folder / STUDY, f"{point.run}: {row}", REMEDY)
    return Study(experiment, content.points, runs, content.ensembles)


def _is_labelled(point: StudyPoint, axis: str, experiment: Experiment) -> bool:
    """Whether a point's label stands for its value; True for a label of several keys or of an interpolation."""
    label, value = point.labels[axis], point.values[axis]
    choice = (experiment.grid.get(axis, {}) | experiment.values_beyond(axis)).get(label, label)
    return not isinstance(choice, str) or "${" in choice or _plain(choice) == _plain(value)


def _plain(value: str) -> str:
    """A value without what its forms on a command line and in Python differ in: null and None, 1e-3 and 0.001."""
    parts = [
        str(number) if (number := number_in(part)) is not None else part for part in re.findall(r"[\w.+-]+", value)
    ]
    return " ".join(parts).casefold().replace("null", "none")


def names_of_runs(folder: Path) -> set[str]:
    """The names of the runs that were asked for in a report's folder, which has no results before they are trained.

    Raises:
        ConfigError: not a report folder, or a file cannot be read.
    """
    if not (folder / STUDY).is_file():
        raise ConfigError(f"{folder} is no report: it has no {STUDY}")
    return {point.run for point in files.read_json(folder / STUDY, _StudyFile, REMEDY).points}


def ensembles_of(folder: Path) -> list[EnsembleLine]:
    """The ensembles of a report; empty if there is no report.

    Raises:
        DamagedFileError: its file cannot be read.
    """
    file = folder / STUDY
    return files.read_json(file, _StudyFile, REMEDY).ensembles if file.is_file() else []
