"""From points to runs: skip the finished, launch the rest, say what failed."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from albert_lab.errors import ConfigError
from albert_lab.lab import launchers, results
from albert_lab.lab import run as runs
from albert_lab.lab.experiment import Experiment, Point, points

if TYPE_CHECKING:
    import pandas as pd

SOME_FAILED = 3


@dataclass(frozen=True)
class PlannedPoint:
    """A point of an experiment with the run that makes it; several points may share one."""

    point: Point
    run: runs.Run

    @property
    def state(self) -> runs.State:
        """How far the run is."""
        return runs.state(self.run.folder)


@dataclass(frozen=True)
class Options:
    """How to go about a sweep, as on the command line."""

    jobs: int = 1
    fail_fast: bool = False
    fresh: bool = False
    retry_failed: bool = False


@dataclass
class Outcome:
    """What came of a sweep: 0, or why it is not complete; failures by run name."""

    code: int = 0
    failures: dict[str, str] = field(default_factory=dict)


def plan(experiment: Experiment, overrides: Sequence[str]) -> list[PlannedPoint]:
    """Every point of an experiment with its run; writes nothing.

    Raises:
        ConfigError: a configuration that does not fit, or points that are scored on different held-out sets.
        MissingDataError: text that is not there.
    """
    from albert_lab.data.pairs import check_kinds

    planned = [PlannedPoint(point, runs.plan(point.config)) for point in points(experiment, overrides)]
    _check_one_evaluation_set(planned)
    for item in planned:
        check_kinds(item.point.config.inter_sentence)
    return planned


def _check_one_evaluation_set(planned: Sequence[PlannedPoint]) -> None:
    rows: dict[str, str] = {}
    for item in planned:
        words = " ".join(f"{axis}={label}" for axis, label in item.point.row.items())
        rows.setdefault(item.run.evaluation_set, words)
    if len(rows) > 1:
        raise ConfigError(
            "one table cannot hold these rows, which are scored on different held-out sets (corpus, tokenizer, length"
            f" and masking decide the set): {'; '.join(rows.values())}. Make them as separate sweeps"
        )


def execute(planned: Sequence[PlannedPoint], options: Options) -> Outcome:
    """Make every run that is not finished, in child processes, and tell how each ended on stderr.

    A run that failed before is left alone unless options.retry_failed; options.fresh makes all of them again.
    """
    folders = {item.run.folder: item.run for item in planned}
    outcome = Outcome()
    for folder in folders:
        state = runs.state(folder)
        if (options.fresh and state != "running") or (state == "failed" and options.retry_failed):
            runs.forget(folder, keep_checkpoint=False)
    todo = []
    for folder, run in folders.items():
        state = runs.state(folder)
        if state == "failed":
            outcome.failures[run.name] = runs.failure(folder) + " (--retry-failed makes it again)"
        elif state != "done":
            todo.append(run)
    done = len(folders) - len(todo) - len(outcome.failures)
    _say(f"{len(folders)} runs: {done} finished before, {len(todo)} to make, {len(outcome.failures)} failed before")
    if todo:
        _prepare_data(todo)
        _launch(todo, options, outcome)
    if outcome.failures and not outcome.code:
        outcome.code = SOME_FAILED if len(folders) > 1 else 1
    for name, error in outcome.failures.items():
        _say(f"FAILED {name}: {error}")
    return outcome


def _prepare_data(todo: Sequence[runs.Run]) -> None:
    """Text, tokenizer and shards once, ahead of the children that share them; too little text is found out here."""
    from albert_lab.data.pairs import make_pairs
    from albert_lab.data.shards import open_shards, prepare

    for config in {(run.evaluation_set, run.config.inter_sentence.name): run.config for run in todo}.values():
        folder = prepare(config, _say)
        # Held-out text is the smaller part: what can be made of it can be made of the rest.
        make_pairs(
            open_shards(folder, "dev"),
            config.inter_sentence,
            max_sequence_length=config.max_sequence_length,
            short_sequence_probability=config.short_sequence_probability,
            seed=config.evaluation.seed,
            epoch=0,
        )


def _launch(todo: Sequence[runs.Run], options: Options, outcome: Outcome) -> None:
    names = {runs.create(run): run.name for run in todo}
    started = time.monotonic()
    ended = 0

    def on_end(folder: Path, code: int) -> bool:
        nonlocal ended
        ended += 1
        if (folder / results.RECORD).exists():
            _say(f"[{ended}/{len(names)}] {names[folder]}: done after {time.monotonic() - started:,.0f} s in all")
        elif code not in (launchers.STOPPED, launchers.INTERRUPTED):
            has_note = (folder / runs.FAILURE).exists()
            outcome.failures[names[folder]] = runs.failure(folder) if has_note else _describe_exit(code)
            _say(f"[{ended}/{len(names)}] {names[folder]}: FAILED: {outcome.failures[names[folder]]}")
            return not options.fail_fast
        return True

    # Under a budget in seconds a neighbour would take time away: one run at a time.
    jobs = 1 if any(run.config.budget.unit == "seconds" for run in todo) else options.jobs
    if jobs < options.jobs:
        _say("a budget in seconds: runs go one at a time, whatever --jobs says")
    outcome.code = launchers.launch(names, jobs=jobs, on_end=on_end)


def _describe_exit(code: int) -> str:
    if code < 0:
        return (
            f"its process was killed by signal {-code} (9 may mean out of memory); the same command goes on from there"
        )
    return f"its process ended with exit code {code}; what it said stands above"


def report_place(planned: Sequence[PlannedPoint]) -> str:
    """Name of the folder for reports of this scale and corpus."""
    config = planned[0].point.config
    return f"{config.scale.name}-{config.corpus.name}"


def points_table(planned: Sequence[PlannedPoint], outcome: Outcome, command: str) -> "pd.DataFrame":
    """One row a point: its axes as run here and as in the paper, seed, run, and why it is missing if it is."""
    import pandas as pd

    rows = []
    for item in planned:
        row: dict[str, object] = {axis: _value(item.point, axis) for axis in item.point.row}
        row |= {f"paper_{axis}": label for axis, label in item.point.row.items()}
        config, state = item.point.config, item.state
        reason = outcome.failures.get(item.run.name, "" if state == "done" else "stopped before its end")
        row |= {"seed": config.seed, "run": item.run.name, "state": state, "reason": reason}
        rows.append(row | {"scale": config.scale.name, "corpus": config.corpus.name, "command": command})
    return pd.DataFrame(rows)


def _value(point: Point, axis: str) -> str:
    value: object = point.config
    for part in axis.split("."):
        value = getattr(value, part)
    return str(getattr(value, "name", value))


def tables(planned: Sequence[PlannedPoint]) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """The table of the finished runs, and their learning curves."""
    folders = list(dict.fromkeys(item.run.folder for item in planned if item.state == "done"))
    records = [record for folder in folders if (record := results.read(folder))]
    return results.table(records), results.curves(folders)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
