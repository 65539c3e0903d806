"""Runs whose numbers stand in reports: they count as done where their folders are not."""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from albert_lab.lab import downstream, results
from albert_lab.lab.run import Run
from albert_lab.tasks.records import identity_of

RESULTS, CURVES, TUNINGS = "results.csv", "curves.csv", "finetuning.csv"

Row = dict[str, str]


def _by_run() -> dict[str, list[Row]]:
    return defaultdict(list)


@dataclass(frozen=True)
class Records:
    """The rows of runs in CSV files of reports, as text, by the run's name."""

    results: dict[str, list[Row]] = field(default_factory=_by_run)
    curves: dict[str, list[Row]] = field(default_factory=_by_run)
    tunings: dict[str, list[Row]] = field(default_factory=_by_run)
    layers: dict[str, list[Row]] = field(default_factory=_by_run)

    def has(self, run: Run, tasks: Iterable[str], seeds: downstream.Seeds = None) -> bool:
        """Whether a run stands there with every fine-tuning that these tasks ask for."""
        if run.name not in self.results:
            return False
        tuned = {row.get("identity") for row in self.tunings.get(run.name, ())}
        wanted = downstream.wanted(run.config, tasks, seeds)
        return tuned.issuperset(identity_of(run.name, run.config, task, seed) for task, seed in wanted)


def read(folder: Path) -> Records:
    """The runs in the reports of a folder; where several reports have one, its rows are those of the first by name.

    What a report lacks (layers, learning curves) may stand in another.
    """
    found = Records()
    files = {RESULTS: found.results, CURVES: found.curves, TUNINGS: found.tunings, results.LAYERS: found.layers}
    for name, rows in files.items():
        for file in sorted(folder.glob(f"*/{name}")):
            for run, lines in _lines(file).items():
                rows.setdefault(run, lines)
    return found


def _lines(file: Path) -> dict[str, list[Row]]:
    lines = _by_run()
    with file.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if "run" in row:
                lines[row["run"]].append(row)
    return lines
