"""The data of a report, as files in its folder: the experiment, its points, its runs and its ensembles."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omegaconf import OmegaConf
from pydantic import Field

from albert_lab import files
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.record import Name, Record
from albert_lab.runs import reported
from albert_lab.runs.reported import REMEDY, ReportedRun
from albert_lab.storage import write_atomically
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.experiment import read as read_experiment

EXPERIMENT, STUDY = "experiment.yaml", "study.json"


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


class EnsembleLine(Record):
    """An ensemble of the fine-tunings of one run on a task; main scores in percent, on n dev examples.

    single is the median of all fine-tunings; members are the scores of those that were averaged.
    """

    column: str
    title: str
    run: Name
    row: str
    n: int
    single: float
    members: tuple[float, ...]
    ensemble: float


class _StudyFile(Record):
    """The content of study.json."""

    points: tuple[StudyPoint, ...] = Field(min_length=1)
    ensembles: tuple[EnsembleLine, ...]


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
    asked = _StudyFile(points=tuple(study.points), ensembles=tuple(study.ensembles))
    write_atomically(folder / STUDY, asked.model_dump_json(indent=1) + "\n")
    kept = {reported.file_of(folder, run.name) for run in study.runs}
    for file in (folder / reported.FOLDER).glob("*.json"):
        if file not in kept and file.is_file():
            file.unlink()


def read(folder: Path) -> Study:
    """The study in a report's folder, its runs in the order of its points.

    Raises:
        ConfigError: not a report folder, or a file cannot be read.
    """
    content = _read(folder)
    axes = {(*point.labels,) for point in content.points}
    if len(axes) > 1:
        raise DamagedFileError(folder / STUDY, "its points have different axes", REMEDY)
    order = {point.run: place for place, point in enumerate(content.points)}
    runs = sorted(reported.read_all(folder), key=lambda run: order.get(run.name, len(order)))
    versions = sorted({run.record.results_version for run in runs})
    if len(versions) > 1:
        said = f"has runs of results versions {' and '.join(map(str, versions))}, which share no table"
        raise DamagedFileError(folder / reported.FOLDER, said, REMEDY)
    return Study(read_experiment(folder / EXPERIMENT), content.points, runs, content.ensembles)


def names_of_runs(folder: Path) -> set[str]:
    """The names of the runs that were asked for in a report's folder, which has no results before they are trained.

    Raises:
        ConfigError: not a report folder, or a file cannot be read.
    """
    return {point.run for point in _read(folder).points}


def _read(folder: Path) -> _StudyFile:
    if not (folder / STUDY).is_file():
        raise ConfigError(f"{folder} is no report: it has no {STUDY}")
    return files.read_json(folder / STUDY, _StudyFile, REMEDY)


def titles_of_runs(reports: Path) -> dict[str, str]:
    """The row and the seed of each run in the reports below a folder, by its name; damaged reports have none."""
    titles = {}
    for file in reports.glob(f"*/*/{STUDY}"):
        with suppress(DamagedFileError):
            for point in files.read_json(file, _StudyFile, REMEDY).points:
                row = " ".join(f"{axis}={label}" for axis, label in point.labels.items())
                titles[point.run] = f"{row} seed {point.seed}" if row else point.run
    return titles
