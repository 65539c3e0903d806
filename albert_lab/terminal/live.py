"""One live view of all runs of a study, from the logs in their folders; a few plain lines without a terminal."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from albert_lab.runs.run import RECORD
from albert_lab.training.log import METRICS

POLL_SECONDS = 0.5
TAIL_BYTES = 4096  # of a log: its last line is within
QUARTER = 0.25


@dataclass(frozen=True)
class WatchedRun:
    """A run of a study: its row and seed as in tables, and its folder."""

    row: str
    seed: int
    folder: Path


@dataclass(frozen=True)
class Progress:
    """What the log of a run says: the share of its budget, its seconds so far and those left, its step and loss."""

    share: float = 0.0
    gone: float = 0.0
    left: float | None = None
    step: int = 0
    loss: float | None = None


def read(folder: Path) -> Progress:
    """The progress of a run from the last training line of its log; that of a finished run is 1."""
    is_done, file = (folder / RECORD).exists(), folder / METRICS
    if not file.exists():
        return Progress(share=1.0 if is_done else 0.0)
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()
    line = next((found for text in reversed(lines) if (found := _training(text))), {})
    share = 1.0 if is_done else min(line.get("share") or 0.0, 0.99)
    gone, left = line.get("training_seconds", 0.0), line.get("seconds_left")
    return Progress(share, gone, 0.0 if is_done else left, line.get("step", 0), line.get("loss"))


def _training(text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError:  # the beginning was cut off, or the end is not written yet
        return {}
    return line if isinstance(line, dict) and line.get("event") == "training" else {}


@contextmanager
def watching(title: str, runs: Sequence[WatchedRun], log: Path, console: Console | None = None) -> Iterator[None]:
    """Show the progress of runs on stderr within this context, whoever trains them.

    Args:
        log: the file of all other lines of the study, which is named.
    """
    console = console or Console(stderr=True, highlight=False)
    stop, started = threading.Event(), time.monotonic()
    target = _live if console.is_terminal else _plain
    thread = threading.Thread(target=target, args=(console, title, runs, log, stop, started), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _live(
    console: Console, title: str, runs: Sequence[WatchedRun], log: Path, stop: threading.Event, started: float
) -> None:
    with Live(console=console, auto_refresh=False, transient=True) as shown:
        while not stop.wait(POLL_SECONDS):
            shown.update(view(title, runs, log, time.monotonic() - started), refresh=True)


def _plain(
    console: Console, title: str, runs: Sequence[WatchedRun], log: Path, stop: threading.Event, started: float
) -> None:
    """A line when a run starts a quarter of its budget."""
    console.print(f"{title} All lines: {log}", soft_wrap=True)
    said = dict.fromkeys(runs, -1)
    is_last = False
    while not is_last:
        is_last = stop.wait(POLL_SECONDS)
        for run in runs:
            now = read(run.folder)
            quarter = int(now.share / QUARTER) if now.step or now.share else -1
            if quarter > said[run]:
                said[run] = quarter
                left = "" if now.left is None else f", {clock(now.left)} left"
                console.print(
                    f"{run.row}, seed {run.seed}: {now.share:.0%}{left if now.share < 1 else ''}", soft_wrap=True
                )


def view(title: str, runs: Sequence[WatchedRun], log: Path, gone: float) -> Group:
    """The rows by their labels and seeds, a bar a run; one line of what happens now; and a bar of the whole study."""
    found = {(run.row, run.seed): read(run.folder) for run in runs}
    seeds = sorted({run.seed for run in runs})
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for seed in seeds:
        table.add_column(f"seed {seed}", no_wrap=True)
    for row in dict.fromkeys(run.row for run in runs):
        table.add_row(Text(row), *(_cell(found.get((row, seed))) for seed in seeds))
    now = [(place, progress) for place, progress in found.items() if 0 < progress.share < 1]
    said = [
        f"{row}, seed {seed}: step {p.step:,}" + (f", loss {p.loss:.2f}" if p.loss else "") for (row, seed), p in now
    ]
    share = sum(progress.share for progress in found.values()) / max(len(found), 1)
    study = Table.grid(padding=(0, 1))
    left = f"{clock(gone / share * (1 - share))} left" if share > 0 else "starting"
    study.add_row(
        left, ProgressBar(total=1, completed=share, width=30), f"{share:4.0%}  whole study, {clock(gone)} gone"
    )
    help_line = Text(f"Ctrl-C keeps everything; the same command goes on. All lines: {log}", style="dim")
    return Group(Text(title, style="bold"), table, Text("; ".join(said[:2]), style="dim"), study, help_line)


def _cell(progress: Progress | None) -> Table | Text:
    if progress is None or progress.share <= 0:
        return Text("" if progress is None else "waiting", style="dim")
    if progress.share >= 1:
        return Text("done", style="green")
    grid = Table.grid(padding=(0, 1))
    left = "" if progress.left is None else clock(progress.left)
    grid.add_row(left, ProgressBar(total=1, completed=progress.share, width=8), f"{progress.share:4.0%}")
    return grid


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
