"""The training of a study in sight: a live view, all other lines in a log that it names, and the
report at the end.
"""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from datetime import datetime
from pathlib import Path

from albert_lab import paths
from albert_lab.analysis.analysis import Analysis
from albert_lab.errors import INTERRUPTED, STOPPED, UNWRITTEN
from albert_lab.machine import busy
from albert_lab.messages import counted, printable, to_stderr
from albert_lab.report import report
from albert_lab.studies import prices
from albert_lab.studies.execute import execute
from albert_lab.studies.jobs import Options
from albert_lab.studies.plan import Plan
from albert_lab.tasks.records import record_file
from albert_lab.terminal import live
from albert_lab.terminal.console import PlainConsole, from_here


def train_study(plan: Plan, options: Options) -> tuple[int, Analysis | None]:
    """Train the missing runs of a study, in sight, and write its report.

    Returns the exit code, and the analysis of the study; None if no run is done, or if it was
    stopped.
    """
    with _shown(plan, options) as watch:

        def on_timed() -> None:
            if watch:
                watch.expected = prices.price([plan]).seconds

        outcome = execute(plan, options, on_timed)
        command = shlex.join(["albert-lab", *sys.argv[1:]])
        analysis = report.write_of(plan, outcome.failures, command)
    for name, reason in outcome.failures.items():
        to_stderr(f"FAILED {name}: {reason}")
    if watch and outcome.failures:
        to_stderr(f"all lines: {watch.log}")
    if outcome.code in (INTERRUPTED, STOPPED):
        to_stderr("stopped: everything is kept, and the same command goes on")
        return outcome.code, None
    if analysis is None and options.slurm is None:
        to_stderr("no run is finished: no report")
    if outcome.code == UNWRITTEN:
        to_stderr(
            "the disk is full: no further run is started; the same command goes on when there is "
            "room"
        )
        return 1, analysis
    return outcome.code, analysis


@contextmanager
def _shown(plan: Plan, options: Options) -> Iterator[live.Watch | None]:
    """Shows the runs of a plan within this context, while all other lines go to the log of the
    yielded watch.

    Warnings of the log are repeated at the end. Without anything to train here, nothing is shown
    and there is no watch.
    """
    if not (plan.to_train and options.is_here):
        yield None
        return
    rows = {point.row for point in plan.points}
    seeds = {point.config.seed for point in plan.points}
    size = f"{counted(len(rows), 'row')}, {counted(len(seeds), 'seed')}"
    scale = plan.config.scale.name
    corpus = plan.config.corpus.name
    title = f"{plan.experiment.title}  ({size}, scale {scale}, corpus {corpus}) {busy()}"
    log = paths.home() / "logs" / f"{plan.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    watch = live.Watch(printable(title.rstrip()), _watched(plan), Path(from_here(log)))
    with log.open("a", buffering=1, errors="backslashreplace") as lines:
        print(f"\n{datetime.now():%Y-%m-%d %H:%M:%S}  {shlex.join(sys.argv)}", file=lines)
        start = lines.tell()
        try:
            with live.watching(watch, PlainConsole(file=sys.stderr)), redirect_stderr(lines):
                yield watch
        finally:
            with log.open(errors="replace") as written:
                written.seek(start)
                for line in dict.fromkeys(line for line in written if line.startswith("warning: ")):
                    to_stderr(line.rstrip())


def _watched(plan: Plan) -> list[live.WatchedRun]:
    """Each run of a plan once: those of its rows, and those that are trained for them."""
    watched = []
    pace = prices.TUNING_PACE[prices.device_of(plan.config)]
    known = set[Path]()
    for item in {item.run.name: item for item in (*plan.points, *plan.to_train)}.values():
        tuned = []
        # in the same order
        for finetuning, work in zip(item.missing, prices.tunings(item).values(), strict=True):
            start, task, seed = finetuning
            file = record_file(start.folder, task.name, seed)
            # Several runs need that of random weights, and one of them makes it.
            if file not in known:
                known.add(file)
                tuned.append((file, pace * work))
        watched.append(
            live.WatchedRun(
                printable(item.row),
                item.config.seed,
                item.run.folder,
                prices.work(item),
                tuple(tuned),
            )
        )
    return watched
