"""The training of a study, and its report."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_lab import paths
from albert_lab.errors import INTERRUPTED, STOPPED
from albert_lab.messages import duration, to_stderr

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.analysis.analysis import Analysis
    from albert_lab.studies.execute import Options, Outcome
    from albert_lab.studies.plan import Plan
    from albert_lab.terminal.live import WatchedRun

# Options for training runs again, or elsewhere; the command in a report does not have them.
ONCE = ("--fresh", "--retry-failed")


def train_study(plan: "Plan", options: "Options") -> "tuple[int, Analysis | None]":
    """Train the missing runs of a study, in sight, and write its report.

    Returns the exit code, and the analysis of the study; None if no run is done, or if it was stopped.
    """
    from albert_lab.studies.execute import execute

    if not options.is_here:
        return execute(plan, options).code, None
    with _shown(plan, options) as log:
        outcome = execute(plan, options)
        analysis = _report(plan, outcome)
    for name, reason in outcome.failures.items():
        to_stderr(f"FAILED {_titled(name, plan)}: {_titled(reason, plan)}")
    if log and outcome.failures:
        to_stderr(f"all lines: {log}")
    if outcome.code in (INTERRUPTED, STOPPED):
        to_stderr("stopped: everything is kept, and the same command goes on")
        return outcome.code, None
    if analysis is None:
        to_stderr("no run is finished: no report")
    return outcome.code, analysis


def _report(plan: "Plan", outcome: "Outcome") -> "Analysis | None":
    """Write the report of the runs that are done; None if there are none."""
    from albert_lab.analysis.analysis import analyse
    from albert_lab.report import report
    from albert_lab.studies.study import collect

    study = collect(plan.updated(), outcome.failures, this_command(), to_stderr)
    if not study.runs:
        return None
    analysis = analyse(study)
    report.write(plan.report_folder, analysis)
    return analysis


@contextmanager
def _shown(plan: "Plan", options: "Options") -> "Iterator[Path | None]":
    """Shows the runs of a plan within this context, while all other lines go to a log, which is yielded.

    Warnings of the log are repeated at the end. Without anything to train, nothing is shown and there is no log.
    """
    from rich.console import Console

    from albert_lab.machine import jobs_at_once
    from albert_lab.studies import prices
    from albert_lab.terminal import live

    if not plan.to_train:
        yield None
        return
    jobs = jobs_at_once(options.jobs, plan.config.machine.processes)
    seconds = prices.price(plan).time(prices.last_speed(prices.device_of(plan.config), jobs), jobs)
    about = "" if seconds is None else f" About {duration(seconds)} here."
    rows, seeds = ({*of} for of in zip(*((item.row, item.point.config.seed) for item in plan.points), strict=True))
    what = f"{_counted(rows, 'row')} x {_counted(seeds, 'seed')}, scale {plan.config.scale.name}"
    name = plan.experiment.title
    title = f"{name}{'' if name[-1] in '.?!' else '.'}  {what}, corpus {plan.config.corpus.name}.{about}"
    log = paths.home() / "logs" / f"{plan.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    here = Path(os.path.relpath(log)) if log.is_relative_to(Path.cwd()) else log
    watch = live.Watch(title, _watched(plan), here, seconds)
    console = Console(file=sys.stderr, highlight=False)
    with log.open("a", buffering=1, errors="backslashreplace") as lines:
        print(f"\n{datetime.now():%Y-%m-%d %H:%M:%S}  {this_command()}", file=lines)
        start = lines.tell()
        try:
            with live.watching(watch, console), redirect_stderr(lines):
                yield here
        finally:
            with log.open(errors="replace") as written:
                written.seek(start)
                for line in dict.fromkeys(line for line in written if line.startswith("warning: ")):
                    to_stderr(line.rstrip())


def _counted(things: "set[Any]", name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _watched(plan: "Plan") -> "list[WatchedRun]":
    """The runs of a plan: its rows, and those that are trained for them."""
    from albert_lab.studies import prices
    from albert_lab.tasks.records import record_file
    from albert_lab.terminal.live import WatchedRun

    items = {item.run.name: item for item in (*plan.rows, *plan.to_train)}
    watched = []
    for item in items.values():
        flops = prices.finetuning_flops(item)
        files = [
            (record_file(start.folder, task.name, seed), start.name, task.name, seed)
            for start, task, seed in item.missing
        ]
        tuned = tuple((file, flops[start, task, seed]) for file, start, task, seed in files)
        watched.append(WatchedRun(item.row, item.point.config.seed, item.run.folder, prices.work(item), tuned))
    return watched


def _titled(text: str, plan: "Plan") -> str:
    """A text with rows and seeds in place of the names of runs, except in paths."""
    for name, item in plan.family.items():
        text = re.sub(rf"(?<![\w/]){re.escape(name)}(?![\w/])", lambda _, title=item.title: title, text)
    return text


def this_command() -> str:
    """The command line, without options on how, or where, its runs are trained this time."""
    return shlex.join(["albert-lab", *repeatable(sys.argv[1:])])


def repeatable(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command without those on how, or where, its runs are trained this time."""
    kept: list[str] = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        is_once = argument in ONCE or "--slurm" in (before, argument)
        if not is_once and not re.match(r"--slurm=|\+*launcher(\.\w+)?=", argument):
            kept.append(argument)
    return kept
