"""Runs whose numbers stand in reports: they count as done where their folders are not."""

import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from albert_lab import paths
from albert_lab.errors import DamagedFileError
from albert_lab.files import rows_of_csv
from albert_lab.messages import Say
from albert_lab.runs import finetunings as downstream
from albert_lab.runs import run as runs
from albert_lab.runs import states
from albert_lab.runs.results import CURVES, LAYERS, RESULTS, TUNINGS
from albert_lab.tasks.records import identity_of

if TYPE_CHECKING:
    import pandas as pd

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

    def has(self, run: runs.Run, tasks: Iterable[str], seeds: downstream.Seeds = None) -> bool:
        """Whether a run stands there with every fine-tuning that these tasks ask for."""
        if run.name not in self.results:
            return False
        tuned = {row.get("identity") for row in self.tunings.get(run.name, ())}
        wanted = downstream.wanted(run.config, tasks, seeds)
        return tuned.issuperset(identity_of(run.name, run.config, task, seed) for task, seed in wanted)


def read(folders: Iterable[Path], say: Say) -> Records:
    """The runs in the reports of folders; of one that is damaged none are taken, and that is said.

    Reports of other tasks have other columns and fine-tunings of a run, which are joined: a cell is empty where a
    report has no such score. Of everything else that several reports have, the first by name is taken.
    """
    found = Records()
    for report in (report for folder in folders for report in sorted(folder.glob("*/"))):
        try:
            results, tunings, curves, layers = (_lines(report / name) for name in (RESULTS, TUNINGS, CURVES, LAYERS))
            _check(report / RESULTS, results)
        except DamagedFileError as error:
            say(f"the runs of the report {report} are not taken from it: {error}")
            continue
        for run, rows in results.items():
            known = found.results.get(run, rows)
            found.results[run] = [row | _filled(was) for row, was in zip(rows, known, strict=True)]
        for run, rows in tunings.items():
            known = {row.get("identity") for row in found.tunings[run]}
            found.tunings[run] += [row for row in rows if row.get("identity") not in known]
        for read_now, kept in ((curves, found.curves), (layers, found.layers)):
            for run, rows in read_now.items():
                kept.setdefault(run, rows)
    return found


def _check(file: Path, results: dict[str, list[Row]]) -> None:
    for run, rows in results.items():
        if len(rows) > 1:
            raise DamagedFileError(file, f"has {len(rows)} lines of the run {run}")


def set_aside(folder: Path, results: "pd.DataFrame", tunings: "pd.DataFrame", say: Say) -> None:
    """Copy a report beside itself where these tables in its place would lose numbers that no run folder has.

    The copy counts as a record like the report itself.
    """
    lost: set[str] = set()
    damage = ""
    for name, key, table in ((RESULTS, "run", results), (TUNINGS, "identity", tunings)):
        kept = {line[key] for line in table.to_dict("records")}
        try:
            before = _lines(folder / name).items()
        except DamagedFileError as error:
            damage = str(error)
            continue
        lost |= {run for run, rows in before if not kept.issuperset(row.get(key) for row in rows)}
    lost = {run for run in lost if states.state(paths.runs() / run) != "done"}
    if not lost and not damage:
        return
    copies = (folder.with_name(f"{folder.name}-before-{number}") for number in count(1))
    copy = next(copy for copy in copies if not copy.exists())
    shutil.copytree(folder, copy)
    if damage:
        say(f"the report before is damaged, and kept as {copy}: {damage}")
        return
    what = "1 run of the report before has" if len(lost) == 1 else f"{len(lost)} runs of the report before have"
    say(f"{what} numbers that exist nowhere else: it is kept as {copy}")


def _filled(row: Row) -> Row:
    return {column: cell for column, cell in row.items() if cell}


def _lines(file: Path) -> dict[str, list[Row]]:
    lines = _by_run()
    for row in rows_of_csv(file):
        if "run" in row:
            lines[row["run"]].append(row)
    return lines
