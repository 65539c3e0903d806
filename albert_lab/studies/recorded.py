"""Runs whose numbers are in reports: they count as finished even if their run folders were deleted."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

from albert_lab import paths
from albert_lab.errors import DamagedFileError
from albert_lab.messages import Say
from albert_lab.runs import finetunings, reported, states
from albert_lab.runs.reported import ReportedRun
from albert_lab.runs.run import Run
from albert_lab.tasks.records import identity_of, read_record


def read(run: str, folders: Iterable[Path], say: Say, *, with_layers: bool = False) -> tuple[ReportedRun, ...]:
    """A run as read from the reports in folders, in the order of the folders.

    Reports of one training are joined, since each has only the fine-tunings of its table. Another training of the same
    name has other numbers and is a separate item. Damaged files are skipped with a message.

    Args:
        with_layers: leave out trainings whose layers were not measured.
    """
    distinct: dict[int, ReportedRun] = {}
    for file in (file for folder in folders for file in sorted(folder.glob(f"*/{reported.FOLDER}/{run}.json"))):
        try:
            here = reported.read(file)
        except DamagedFileError as error:
            say(f"a run is not taken from its report: {error}")
            continue
        same = next((place for place, known in distinct.items() if known.record == here.record), len(distinct))
        distinct[same] = distinct[same].joined(here) if same in distinct else here
    return tuple(known for known in distinct.values() if known.layers or not with_layers)


def complete(
    records: Iterable[ReportedRun], run: Run, tasks: Mapping[str, str], seeds: finetunings.Seeds = None
) -> ReportedRun | None:
    """The first training with all fine-tunings of tasks and seeds, reduced to these; None if no training has all."""
    wanted = finetunings.wanted(run.config, tasks.values(), seeds)
    identities = {identity_of(run.name, run.config, task, seed) for task, seed in wanted}
    names = {column: finetunings.load_task(task).name for column, task in tasks.items()}
    return next((record.filling(names, identities) for record in records if record.identities >= identities), None)


def set_aside(folder: Path, runs: Sequence[ReportedRun], say: Say) -> None:
    """Copy a report to a folder next to it if replacing its runs by these would lose numbers that no run folder has.

    The copy counts as a report like the original. Without a copy, a message tells of the runs that leave the report.
    """
    kept = {run.name: run.identities for run in runs}
    lost: set[str] = set()
    others = 0
    damage = ""
    for file in sorted((folder / reported.FOLDER).glob("*.json")):
        try:
            before = reported.read(file)
            run = paths.runs() / before.name
            others += before.name not in kept
            has_record = before.name in kept or states.state(run) == "done"
            if not has_record or before.identities - kept.get(before.name, set()) - _identities_in(run, before):
                lost.add(before.name)
        except DamagedFileError as error:
            damage = str(error)
    if not lost and not damage:
        if others:
            what = f"{others} other run{'s' * (others > 1)}"
            say(f"the report replaces one with {what}, still in {paths.runs()}")
        return
    copies = (folder.with_name(f"{folder.name}-before-{number}") for number in count(1))
    copy = next(copy for copy in copies if not copy.exists())
    shutil.copytree(folder, copy)
    if damage:
        say(f"the previous report is damaged, and kept as {copy}: {damage}")
        return
    what = "1 run of the previous report has" if len(lost) == 1 else f"{len(lost)} runs of the previous report have"
    say(f"{what} numbers that exist nowhere else: the report is kept as {copy}")


def _identities_in(folder: Path, run: ReportedRun) -> set[str]:
    reported_ones = (record for column in run.columns for record in column.finetunings)
    records = (read_record(folder, record.task, record.seed) for record in reported_ones)
    return {record.identity for record in records if record is not None}
