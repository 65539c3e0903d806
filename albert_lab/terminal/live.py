"""One live view of all runs of a study, from the files in their folders; a few plain lines without
a terminal.
"""

import json
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from albert_lab import signals
from albert_lab.messages import duration
from albert_lab.runs.run import FAILURE, RECORD, is_locked
from albert_lab.training.log import METRICS

POLL_SECONDS = 0.5
RECENT_SECONDS = 240.0
SEEN_SHARE = 0.02  # of the work: done, it shows a speed
TAIL_BYTES = 4096  # of a log: its last line is within
RUNNING = ("starting", "training", "scoring", "tuning")  # states of a run that has a process
TRAINED_SHARE = 0.9  # of a run's work; the rest are its scores
STYLES = {"done": "green", "FAILED": "bold red", "waiting": "dim", "stopped": "dim"}
CELL_WIDTH = 20  # characters of a run


@dataclass(frozen=True)
class WatchedRun:
    """A run of a study: its row and seed as in tables, its folder, and its work in any unit that
    runs share.

    finetunings has the record's file and the work of each fine-tuning that was missing; a file that
    was there before is of other settings.
    """

    row: str
    seed: int
    folder: Path
    work: float = 1.0
    finetunings: tuple[tuple[Path, float], ...] = ()
    planned: float = field(default_factory=time.time, compare=False)

    @property
    def title(self) -> str:
        return f"{self.row}, seed {self.seed}"

    @property
    def total_work(self) -> float:
        return self.work + sum(work for _, work in self.finetunings)


@dataclass(frozen=True)
class Progress:
    """What the files of a run say.

    state is waiting, starting, training, scoring, trained, tuning, stopped, FAILED or done; work is
    what is done of the run's. While it trains, there are seconds that are left, step and loss.
    """

    state: str
    work: float
    share: float
    left: float = 0.0
    step: int = 0
    loss: float = 0.0


def read(run: WatchedRun) -> Progress:
    """The progress of a run from the last training line of its log, its records, and its lock."""
    line = _last_line(run.folder / METRICS)
    since = run.planned - 1  # times of files are a little behind the clock
    tuned = [
        work for file, work in run.finetunings if file.exists() and file.stat().st_mtime > since
    ]
    is_running = is_locked(run.folder)
    share = TRAINED_SHARE * min(line.get("share", 0.0), 1.0)
    if (run.folder / RECORD).exists():
        share = 1.0
        state = "tuning" if is_running else "trained"
        if len(tuned) == len(run.finetunings):
            state = "done"
    elif (run.folder / FAILURE).exists():
        state = "FAILED"
    elif not is_running:
        state = "stopped" if share else "waiting"
    elif share == TRAINED_SHARE:
        state = "scoring"
    else:
        state = "training" if share else "starting"
    work = share * run.work + sum(tuned)
    if state != "training":
        return Progress(state, work, share)
    return Progress(state, work, share, line["seconds_left"], line["step"], line["loss"])


def _last_line(file: Path) -> dict[str, Any]:
    """The last whole line of a log that is of training; empty without one."""
    for text in reversed(_tail(file)):
        with suppress(ValueError):  # the beginning was cut off, or the end is not written yet
            line = json.loads(text)
            if isinstance(line, dict) and line.get("event") == "training":
                return line
    return {}


def _tail(file: Path) -> list[str]:
    if not file.is_file():
        return []
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - TAIL_BYTES))
        return log.read().decode(errors="replace").splitlines()


@dataclass
class Watch:
    """What is watched, and since when.

    Attributes:
        expected: the seconds that all work takes, as soon as a speed is known.
        now: the progress of each run at the last look, at which `gone` seconds had gone by.
        done_at_start: the work that was done when the first run was started here; None before that.
        recent_seconds, recent_run_seconds, recent_work: what went by since then, also summed over
            the runs that had a process, and what was done, the past counting less.
    """

    title: str
    runs: Sequence[WatchedRun]
    log: Path
    expected: float | None = None
    started: float = field(default_factory=time.monotonic)
    now: dict[WatchedRun, Progress] = field(default_factory=dict)
    gone: float = 0.0
    done_at_start: float | None = None
    recent_seconds: float = 0.0
    recent_run_seconds: float = 0.0
    recent_work: float = 0.0

    def look(self) -> None:
        """Read the progress of every run."""
        gone_before = self.gone
        done_before = self.done
        self.gone = time.monotonic() - self.started
        self.now = {run: read(run) for run in self.runs}
        if self.done_at_start is not None:
            # A machine may become busy, so what was minutes ago counts little.
            passed = self.gone - gone_before
            fading = math.exp(-passed / RECENT_SECONDS)
            self.recent_seconds = fading * self.recent_seconds + passed
            of_runs = passed * len(self.running)
            self.recent_run_seconds = fading * self.recent_run_seconds + of_runs
            self.recent_work = fading * self.recent_work + self.done - done_before
        elif self.running:
            self.done_at_start = self.done

    @property
    def running(self) -> list[WatchedRun]:
        """The runs that have a process."""
        return [run for run, progress in self.now.items() if progress.state in RUNNING]

    @property
    def done(self) -> float:
        """The work that is done."""
        return sum(progress.work for progress in self.now.values())

    @property
    def total(self) -> float:
        """All work; runs without steps may have none, of which any share is of one."""
        return sum(run.total_work for run in self.runs) or 1.0

    @property
    def left(self) -> float | None:
        """Seconds, no fewer than of the slowest run, which others cannot help: the expected ones
        until the speed is seen.
        """
        if self.done_at_start is None or self.done - self.done_at_start < SEEN_SHARE * self.total:
            return self.expected
        pace = self.recent_seconds / self.recent_work
        pace_of_one = self.recent_run_seconds / self.recent_work
        seconds = [pace * (self.total - self.done)]
        for run in self.running:
            progress = self.now[run]
            seconds += [progress.left, pace_of_one * (run.total_work - progress.work)]
        return max(seconds)

    @property
    def summary(self) -> str:
        """The time that is gone and left."""
        left = "starting" if self.left is None else f"about {duration(self.left)} left"
        if self.done >= self.total:
            left = "ending"
        return f"{duration(self.gone)} gone, {left}"


@contextmanager
def watching(watch: Watch, console: Console) -> Iterator[None]:
    """Show the progress of runs within this context, whoever trains them."""
    stop = threading.Event()
    show = _draw if console.is_terminal else _tell
    thread = threading.Thread(target=show, args=(console, watch, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _draw(console: Console, watch: Watch, stop: threading.Event) -> None:
    """Draw the view again and again; what is beyond the terminal's height is cut by rich."""
    with Live(
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:
        while not stop.is_set():
            watch.look()
            live.update(view(watch, console.width), refresh=True)
            stop.wait(POLL_SECONDS)
        live.update("")  # rich shows the last one in full, and could not remove it then


def _tell(console: Console, watch: Watch, stop: threading.Event) -> None:
    """Say each event in a line."""
    watch.look()
    told = set(_events(watch))
    console.print(f"{watch.title} All lines: {watch.log}", soft_wrap=True)
    is_last = False
    while not is_last:
        is_last = stop.wait(POLL_SECONDS)
        watch.look()
        for event in _events(watch):
            if event not in told:
                share = watch.done / watch.total
                console.print(f"{event}; study {share:.0%}, {watch.summary}", soft_wrap=True)
        told.update(_events(watch))


def _events(watch: Watch) -> list[str]:
    """What has happened until now."""
    events = []
    if watch.expected is not None:
        events.append("two seconds of steps are timed")
    if watch.done_at_start is not None:
        events.append("text, vocabulary and floors are ready")
    for run, progress in watch.now.items():
        if progress.state in ("training", "done", "FAILED"):
            events.append(f"{run.title}: {progress.state}")
    if signals.exit_code() is not None:
        events.append(_of_ctrl_c(watch))
    return events


def view(watch: Watch, width: int) -> Group:
    """A bar of the whole study; what happens now; the rows by their labels, each with its runs.

    Rows that are not done come first.
    """
    study = Table.grid(padding=(0, 1))
    share = watch.done / watch.total
    bar = ProgressBar(total=1, completed=share, width=30)
    study.add_row(_line(watch.summary, "bold"), bar, f"{share:4.0%}")

    cells: dict[str, list[Text]] = {}
    for run, progress in watch.now.items():
        cells.setdefault(run.row, []).append(_cell(run, progress))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, max_width=width // 3, overflow="ellipsis")
    table.add_column()
    unfinished = {run.row for run, progress in watch.now.items() if progress.state != "done"}
    for row in sorted(cells, key=lambda row: row not in unfinished):
        table.add_row(Text(row), Columns(cells[row], width=CELL_WIDTH))
    lines = (_now(watch), _of_ctrl_c(watch), f"All lines: {watch.log}", "")
    return Group(Text(watch.title, style="bold"), study, *map(_line, lines), table)


def _cell(run: WatchedRun, progress: Progress) -> Text:
    """A run by its seed: its state, or how much is trained, and the time that is left."""
    words = progress.state
    if progress.state == "training":
        words = f"{progress.share:.0%} {duration(progress.left)}"
    return Text(f"seed {run.seed} {words}", style=STYLES.get(progress.state, "cyan"))


def _now(watch: Watch) -> str:
    """What is trained now, or the last line of the log."""
    trained = [
        f"{run.title}: step {progress.step:,}, loss {progress.loss:.2f}"
        for run, progress in watch.now.items()
        if progress.state == "training"
    ]
    last_lines = _tail(watch.log)[-1:] or ["preparing text, vocabulary and floors"]
    return "; ".join(trained[:2] or last_lines)


def _of_ctrl_c(watch: Watch) -> str:
    """What Ctrl-C does; after it, what is waited for."""
    if signals.exit_code() is None:
        return "Ctrl-C keeps everything; the same command goes on."
    waited_for = "; ".join(run.title for run in watch.running) or "processes"
    # The names last, which a narrow terminal may cut.
    return f"Stopping (Ctrl-C again ends what has nothing to save); not ended yet: {waited_for}"


def _line(text: str, style: str = "dim") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
