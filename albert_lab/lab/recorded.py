"""Runs whose numbers stand in reports: they count as done where their folders are not."""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from albert_lab.lab import downstream
from albert_lab.lab.results import CURVES, LAYERS, RESULTS, TUNINGS
from albert_lab.lab.run import Run
from albert_lab.tasks.records import identity_of

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
    """The runs in the reports of a folder.

    Reports of other tasks have other columns and fine-tunings of a run, which are joined: a cell is empty where a
    report has no such score. Of everything else that several reports have, the first by name is taken.
    """
    found = Records()
    for report in sorted(folder.glob("*/")):
        for run, rows in _lines(report / RESULTS).items():
            known = found.results.get(run, rows)
            found.results[run] = [row | _filled(was) for row, was in zip(rows, known, strict=True)]
        for run, rows in _lines(report / TUNINGS).items():
            known = {row.get("identity") for row in found.tunings[run]}
            found.tunings[run] += [row for row in rows if row.get("identity") not in known]
        for name, kept in ((CURVES, found.curves), (LAYERS, found.layers)):
            for run, rows in _lines(report / name).items():
                kept.setdefault(run, rows)
    return found


def _filled(row: Row) -> Row:
    return {column: cell for column, cell in row.items() if cell}


def _lines(file: Path) -> dict[str, list[Row]]:
    lines = _by_run()
    if not file.is_file():
        return lines
    with file.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if "run" in row:
                lines[row["run"]].append(row)
    return lines
