"""One live view of all runs of a study, from the files in their folders; a few plain lines without a terminal."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from albert_lab.runs.run import FAILURE, RECORD, is_locked
from albert_lab.training.log import METRICS

POLL_SECONDS = 0.5
TAIL_BYTES = 4096  # of a log: its last line is within
MANY_RUNS = 12  # of more, only the ends have a plain line
BAR, SEED_WIDTH = 8, 21
OTHER_LINES = 10


@dataclass(frozen=True)
class WatchedRun:
    """A run of a study: its row and seed as in tables, its folder, and its work in any unit that runs share.

    finetunings has the record's file and the work of each fine-tuning that was missing.
    """

    row: str
    seed: int
    folder: Path
    work: float = 1.0
    finetunings: tuple[tuple[Path, float], ...] = ()


@dataclass(frozen=True)
class Progress:
    """What the files of a run say: the share of its budget, seconds that are left, step, loss; fine-tunings done.

    state: waiting, starting, training, scoring, tuning, stopped, FAILED or done.
    """

    state: str = "waiting"
    share: float = 0.0
    left: float | None = None
    step: int = 0
    loss: float | None = None
    tuned: int = 0
    work: float = 0.0


def read(run: WatchedRun) -> Progress:
    """The progress of a run from the last training line of its log, its records, and its lock."""
    is_done, is_running = (run.folder / RECORD).exists(), is_locked(run.folder)
    line = _last_line(run.folder / METRICS)
    share = 1.0 if is_done else min(line.get("share") or 0.0, 0.99)
    tuned = [work for file, work in run.finetunings if file.exists()]
    if is_done:
        state = "done" if len(tuned) == len(run.finetunings) else "tuning" if is_running else "trained"
    elif (run.folder / FAILURE).exists():
        state = "FAILED"
    elif is_running:
        state = "starting" if not share else "scoring" if line["share"] >= 1 else "training"
    else:
        state = "stopped" if share else "waiting"
    left = line.get("seconds_left") if state == "training" else None
    work = share * run.work + sum(tuned)
    return Progress(state, share, left, line.get("step", 0), line.get("loss"), len(tuned), work)


def _last_line(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    lines = reversed(_tail(file))
    return next((found for text in lines if (found := _training(text))), {})


def _tail(file: Path) -> list[str]:
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - TAIL_BYTES))
        return log.read().decode(errors="replace").splitlines()


def _training(text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError:  # the beginning was cut off, or the end is not written yet
        return {}
    return line if isinstance(line, dict) and line.get("event") == "training" else {}


@dataclass
class Watch:
    """What is watched, and since when; `expected` are the seconds that all work takes, if a speed is known."""

    title: str
    runs: Sequence[WatchedRun]
    log: Path
    expected: float | None = None
    started: float = field(default_factory=time.monotonic)
    prepared: float | None = None  # seconds until the first run was started
    before: float | None = None  # work that was done before
    trained_since: float | None = None

    def look(self) -> dict[WatchedRun, Progress]:
        """The progress of every run now."""
        found = {run: read(run) for run in self.runs}
        done = sum(progress.work for progress in found.values())
        self.before = done if self.before is None else self.before
        if self.prepared is None and (done > self.before or any(p.state == "starting" for p in found.values())):
            self.prepared = self.gone
        if self.trained_since is None and done > self.before:
            self.trained_since = self.prepared or 0.0
        return found

    @property
    def gone(self) -> float:
        return time.monotonic() - self.started

    def share(self, found: dict[WatchedRun, Progress]) -> float:
        """The share of the work of the study that is done."""
        return sum(progress.work for progress in found.values()) / max(self._total, 1e-9)

    def left(self, found: dict[WatchedRun, Progress]) -> float | None:
        """Seconds: at the speed so far, of preparation and evaluation too, or else at the expected one."""
        done = sum(progress.work for progress in found.values())
        if self.trained_since is None or done <= (self.before or 0.0):
            return self.expected
        return (self.gone - self.trained_since) * (self._total - done) / (done - (self.before or 0.0))

    @property
    def _total(self) -> float:
        return sum(run.work + sum(work for _, work in run.finetunings) for run in self.runs)


@contextmanager
def watching(watch: Watch, console: Console | None = None) -> Iterator[None]:
    """Show the progress of runs on stderr within this context, whoever trains them."""
    console = console or Console(stderr=True, highlight=False)
    stop = threading.Event()
    thread = threading.Thread(target=_live if console.is_terminal else _plain, args=(console, watch, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _live(console: Console, watch: Watch, stop: threading.Event) -> None:
    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False) as now:
        while not stop.is_set():
            now.update(view(watch, watch.look(), console.width, console.height), refresh=True)
            stop.wait(POLL_SECONDS)


def _plain(console: Console, watch: Watch, stop: threading.Event) -> None:
    """A line when the text is ready, and when a run starts, is in the middle, and ends."""

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False)

    say(f"{watch.title} All lines: {watch.log}")
    marks = ("done",) if len(watch.runs) > MANY_RUNS else ("begun", "half", "done")
    said = {run: _mark(progress) for run, progress in watch.look().items()}
    is_ready = is_last = False
    while not is_last:
        is_last = stop.wait(POLL_SECONDS)
        found = watch.look()
        if watch.prepared is not None and not is_ready:
            is_ready = True
            say(f"text, vocabulary and floors are ready: {clock(watch.prepared)} gone")
        for run, progress in found.items():
            mark = _mark(progress)
            if mark != said[run] and mark in (*marks, "FAILED"):
                left = watch.left(found)
                about = f", about {clock(left)} left" if left is not None and watch.share(found) < 1 else ""
                what = {"begun": f"training, {clock(watch.gone)} gone", "half": f"{progress.share:.0%}"}.get(mark, mark)
                say(f"{run.row}, seed {run.seed}: {what}{f'; study {watch.share(found):.0%}{about}' if about else ''}")
            said[run] = mark


def _mark(progress: Progress) -> str:
    if progress.state in ("done", "FAILED"):
        return progress.state
    return "half" if progress.share >= 0.5 else "begun" if progress.step else "waiting"


def view(watch: Watch, found: dict[WatchedRun, Progress], width: int, height: int) -> Group:
    """The rows by their labels and seeds, a bar a run; what happens now; a bar of the whole study. It fits."""
    cells = {(run.row, run.seed): progress for run, progress in found.items()}
    seeds = sorted({run.seed for run in watch.runs})
    rows = [*dict.fromkeys(run.row for run in watch.runs)]
    axes = {row.partition("=")[0] for row in rows}  # the name of a single one stands above its values
    heading = axes.pop() if len(axes) == 1 and not any(" " in row for row in rows) else ""
    names = {row: row.removeprefix(f"{heading}=") for row in rows}
    used = min(max(map(len, [heading, *names.values()])), width // 3)
    has_bars = used + SEED_WIDTH * len(seeds) <= width
    most_seeds = max(1, (width - used - 3) // (SEED_WIDTH if has_bars else 9))
    shown = _rows_that_fit(rows, cells, max(1, height - OTHER_LINES))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(heading, no_wrap=True, max_width=used, overflow="ellipsis")
    for seed in seeds[:most_seeds]:
        table.add_column(f"seed {seed}", no_wrap=True)
    for row in shown:
        table.add_row(Text(names[row]), *(_cell(cells.get((row, seed)), has_bars) for seed in seeds[:most_seeds]))
    hidden = len(rows) - len(shown)
    more = [f"and {hidden} more rows"] * (hidden > 0) + [f"{len(seeds) - most_seeds} more seeds"] * (
        len(seeds) > most_seeds
    )
    study = Table.grid(padding=(0, 1))
    left = watch.left(found)
    share = watch.share(found)
    text = f"{clock(watch.gone)} gone, " + ("starting" if left is None else f"about {clock(left)} left")
    study.add_row(
        Text(text, style="bold", no_wrap=True), ProgressBar(total=1, completed=share, width=30), f"{share:4.0%}"
    )
    texts = [
        Text(_now(watch, found), style="dim", no_wrap=True, overflow="ellipsis"),
        Text("Ctrl-C keeps everything; the same command goes on.", style="dim"),
        Text(f"All lines: {watch.log}", style="dim", no_wrap=True, overflow="ellipsis"),
    ]
    title = Text(watch.title, style="bold", no_wrap=True, overflow="ellipsis")
    return Group(title, study, Text(), table, *([Text("; ".join(more), style="dim")] if more else []), Text(), *texts)


def _rows_that_fit(rows: Sequence[str], cells: dict[tuple[str, int], Progress], most: int) -> list[str]:
    """As many rows as fit, those that are trained now first, in their order."""
    active = {row for (row, _), progress in cells.items() if progress.state in ("starting", "training", "tuning")}
    first = sorted(rows, key=lambda row: row not in active)[:most]
    return [row for row in rows if row in first]


def _now(watch: Watch, found: dict[WatchedRun, Progress]) -> str:
    """What is trained now, or the last line of the log."""
    trained = [(run, p) for run, p in found.items() if p.state == "training"]
    if trained:
        return "; ".join(
            f"{run.row}, seed {run.seed}: step {p.step:,}" + (f", loss {p.loss:.2f}" if p.loss else "")
            for run, p in trained[:2]
        )
    lines = _tail(watch.log) if watch.log.exists() else []
    return lines[-1] if lines else "preparing text, vocabulary and floors"


def _cell(progress: Progress | None, has_bar: bool) -> Table | Text:
    if progress is None:
        return Text("")
    if progress.state == "tuning":
        return Text(f"tuning {progress.tuned + 1}", style="cyan")
    if progress.state != "training":
        styles = {"done": "green", "FAILED": "bold red", "waiting": "dim", "stopped": "dim"}
        return Text(progress.state, style=styles.get(progress.state, ""))
    if not has_bar:
        return Text(f"{progress.share:.0%}")
    grid = Table.grid(padding=(0, 1))
    left = "" if progress.left is None else clock(progress.left)
    grid.add_row(ProgressBar(total=1, completed=progress.share, width=BAR), f"{progress.share:.0%}", left)
    return grid


def clock(seconds: float) -> str:
    """Seconds as minutes or hours: 0:24, 12:05, 3:10:00."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
