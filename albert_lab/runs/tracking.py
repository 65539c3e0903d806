"""Finished runs, sent to trackers after their training: those of a report, or one from its folder."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from albert_lab import paths
from albert_lab.distinct import check_distinct
from albert_lab.errors import ConfigError
from albert_lab.messages import Say
from albert_lab.runs import reported, results, states
from albert_lab.runs import run as runs
from albert_lab.runs.reported import ReportedRun
from albert_lab.trackers.feed import Feed
from albert_lab.trackers.tracker import names


def track(target: str, trackers: Sequence[str], say: Say) -> None:
    """Send the points of finished runs to trackers, without those that they have.

    Args:
        target: the folder of a report, or a run by its name or folder. Of a run that is not in this home, only the
            evaluations and the final scores are sent.

    Raises:
        ConfigError: unknown tracker, run or folder; a run that is not finished; a tracker that refuses.
        MissingDataError: the package of a tracker is not installed.
    """
    for name in trackers:
        if name not in names():
            raise ConfigError(f"--to {name} is no tracker (allowed: {', '.join(names())})")
    try:
        check_distinct(trackers)
    except ValueError as error:
        raise ConfigError(f"--to: {error}") from error
    for run in _runs(target):
        home = paths.runs() / run.name
        has_folder = (home / results.METRICS).is_file()
        folder = home if has_folder else paths.home() / "tracked" / run.name
        lines = results.read_metrics(folder) if has_folder else _curve(run)
        with closing(Feed(trackers, run.name, folder, run.record.config.identity(), say)) as feed:
            for line in lines:
                feed.take(line)
            steps = max([run.record.training.steps, *(line["step"] for line in lines)])
            feed.finish({name: score.value for name, score in run.scores.items()}, steps)
        say(f"{run.name}: {steps:,} steps")


def _runs(target: str) -> list[ReportedRun]:
    path = paths.expanded(target)
    if (path / reported.FOLDER).is_dir():
        return reported.read_all(path)
    folder: Path = runs.find(target)
    states.check_finished(folder)
    record = results.read(folder)
    if record is None:
        raise ConfigError(f"{target} was imported, and has no points")
    return [ReportedRun(record=record, curve=reported.curve(folder))]


def _curve(run: ReportedRun) -> list[dict[str, Any]]:
    return [{"event": "evaluation", **point.model_dump()} for point in run.curve]
