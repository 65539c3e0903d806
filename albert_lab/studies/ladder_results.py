"""The results of a ladder, as files in the folder of its report: what was asked for, and the record of each run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from albert_lab import files
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.messages import Say
from albert_lab.naming import Name
from albert_lab.record import Record
from albert_lab.runs import reported
from albert_lab.runs.reported import REMEDY, ReportedRun
from albert_lab.storage import write_atomically
from albert_lab.studies import collect
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.ladder import Ladder, PlannedRung

FILE = "ladder.json"


class LadderPoint(Record):
    """A run that was asked for: its rung, its row as labels of the axes, its seed, and why it is missing.

    estimated_seconds is the training time that was estimated before; None if it was finished by then. estimated_on is
    the kind of device for which it was estimated.
    """

    rung: Name
    row: dict[str, str]
    seed: int
    run: Name
    reason: str = ""
    estimated_seconds: float | None = None
    estimated_on: Literal["cpu", "cuda"] = "cpu"


class LadderFile(Record):
    """The content of ladder.json; looks are the planned numbers of seeds at which it is judged."""

    experiment: Experiment
    ladder: Ladder
    predicted_flops: float = Field(gt=0)
    command: str
    looks: tuple[int, ...]
    points: tuple[LadderPoint, ...] = Field(min_length=1)


@dataclass(frozen=True)
class LadderResults:
    """A ladder with the finished runs among its points, by name."""

    file: LadderFile
    runs: Mapping[str, ReportedRun]

    @property
    def rungs(self) -> list[str]:
        asked = {point.rung for point in self.file.points}
        return [name for name in self.file.ladder.rungs if name in asked]

    @property
    def missing(self) -> list[LadderPoint]:
        return [point for point in self.file.points if point.run not in self.runs]


def gather(
    file: LadderFile, rungs: Sequence[PlannedRung], failures: Mapping[str, str], before: Path, say: Say
) -> LadderResults:
    """The finished runs of a ladder, with the reasons of missing ones and the estimates of earlier commands.

    Args:
        file: the ladder, with its points as planned.
        before: the folder of the report.
    """
    collected = {run.name: run for run in collect.runs([item for rung in rungs for item in rung.points], say)}
    known = earlier(before)
    estimates = {point.run: point for point in known.file.points} if known else {}
    points = []
    for point in file.points:
        reason = "" if point.run in collected else failures.get(point.run, "not trained yet")
        estimate = point if point.estimated_seconds is not None else estimates.get(point.run, point)
        estimated = {"estimated_seconds": estimate.estimated_seconds, "estimated_on": estimate.estimated_on}
        points.append(point.model_copy(update={"reason": reason} | estimated))
    return LadderResults(file.model_copy(update={"points": tuple(points)}), collected)


def holds(folder: Path) -> bool:
    return (folder / FILE).is_file()


def earlier(folder: Path) -> LadderResults | None:
    """The results that a command is about to replace; None if there are none, or they cannot be read."""
    try:
        return read(folder) if holds(folder) else None
    except DamagedFileError:
        return None


def write(folder: Path, results: LadderResults) -> None:
    """Write ladder.json, and one file per run in runs/; files of other runs are removed."""
    for run in results.runs.values():
        reported.write(folder, run)
    write_atomically(folder / FILE, results.file.model_dump_json(indent=1) + "\n")
    for file in (folder / reported.FOLDER).glob("*.json"):
        if file.stem not in results.runs and file.is_file():
            file.unlink()


def read(folder: Path) -> LadderResults:
    """The results in the folder of a ladder's report.

    Raises:
        ConfigError: not such a folder, or a file cannot be read.
    """
    if not holds(folder):
        raise ConfigError(f"{folder} is no report of a ladder: it has no {FILE}")
    file = files.read_json(folder / FILE, LadderFile, REMEDY)
    asked = {point.run for point in file.points}
    return LadderResults(file, {run.name: run for run in reported.read_all(folder) if run.name in asked})
