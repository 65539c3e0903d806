"""One live view of all runs of a study, from the files in their folders; a few plain lines without
a terminal.
"""

import json
import textwrap
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from albert_lab import signals
from albert_lab.runs.run import FAILURE, RECORD, is_locked
from albert_lab.training.log import METRICS

POLL_SECONDS = 0.5
RECENT_SECONDS = 240.0
TAIL_BYTES = 4096  # of a log: its last line is within
RUNNING = ("starting", "training", "scoring", "tuning")  # states of a run that has a process
BAR, SEED_WIDTH, OTHER_LINES = 8, 21, 9  # lines beside the title and the rows


@dataclass(frozen=True)
class WatchedRun:
    """A run of a study: its row and seed as in tables, its folder, and its work in any unit that
    runs share.

    finetunings has the record's file and the work of each fine-tuning that was missing.
    """

    row: str
    seed: int
    folder: Path
    work: float = 1.0
    finetunings: tuple[tuple[Path, float], ...] = ()


@dataclass(frozen=True)
class Progress:
    """What the files of a run say: the share of its budget, seconds that are left, step, loss;
    fine-tunings done.

    state: waiting, starting, training, scoring, tuning, stopped, FAILED or done.
    """

    state: str = "waiting"
    share: float = 0.0
    left: float | None = None
    step: int = 0
    loss: float | None = None
    tuned: int = 0
    work: float = 0.0

    @property
    def mark(self) -> str:
        """What is said of it without a terminal; empty before it trains."""
        return self.state if self.state in ("done", "FAILED") else "training" if self.step else ""


def read(run: WatchedRun) -> Progress:
    """The progress of a run from the last training line of its log, its records, and its lock."""
    is_done, is_running = (run.folder / RECORD).exists(), is_locked(run.folder)
    line = _last_line(run.folder / METRICS)
    # the last tenth are its scores
    share = 1.0 if is_done else 0.9 * min(line.get("share") or 0.0, 1.0)
    tuned = [work for file, work in run.finetunings if file.exists()]
    if is_done:
        state = (
            "done" if len(tuned) == len(run.finetunings) else "tuning" if is_running else "trained"
        )
    elif (run.folder / FAILURE).exists():
        state = "FAILED"
    elif is_running:
        state = "starting" if not share else "scoring" if line["share"] >= 1 else "training"
    else:
        state = "stopped" if share else "waiting"
    step, loss = line.get("step", 0), line.get("loss")
    left = line.get("seconds_left") if state == "training" else None
    return Progress(state, share, left, step, loss, len(tuned), share * run.work + sum(tuned))


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
    """What is watched, and since when; `expected` are the seconds that all work takes, as soon as
    a speed is known.
    """

    title: str
    runs: Sequence[WatchedRun]
    log: Path
    expected: float | None = None
    started: float = field(default_factory=time.monotonic)
    prepared: float | None = None  # seconds until the first run was started
    before: float | None = None  # work that was done before
    # seconds gone and work done, of the last minutes
    seen: deque[tuple[float, float]] = field(default_factory=deque)

    def look(self) -> dict[WatchedRun, Progress]:
        """The progress of every run now."""
        found = {run: read(run) for run in self.runs}
        done = sum(progress.work for progress in found.values())
        self.before = done if self.before is None else self.before
        if self.prepared is None and (
            done > self.before or any(p.state == "starting" for p in found.values())
        ):
            self.prepared = self.gone
        self.seen.append((self.gone, done))
        while self.gone - self.seen[0][0] > RECENT_SECONDS:
            self.seen.popleft()
        return found

    @property
    def gone(self) -> float:
        return time.monotonic() - self.started

    def share(self, found: dict[WatchedRun, Progress]) -> float:
        """The share of the work of the study that is done."""
        return sum(progress.work for progress in found.values()) / max(self._total, 1e-9)

    def left(self, found: dict[WatchedRun, Progress]) -> float | None:
        """Seconds, no fewer than of the slowest run: at the speed of the last minutes, since a
        machine may become busy.

        Until they show any progress it is the speed so far, and early on the expected one.
        """
        done = sum(progress.work for progress in found.values())
        since, before = self.prepared or 0.0, self.before or 0.0
        if done - before < 0.02 * self._total:
            return self.expected
        if (
            self.seen
            and self.gone - self.seen[0][0] > RECENT_SECONDS / 2
            and self.seen[0][1] < done
        ):
            since, before = max(since, self.seen[0][0]), self.seen[0][1]
        pace = (self.gone - since) / (done - before)
        return max(
            pace * (self._total - done), *(progress.left or 0.0 for progress in found.values())
        )

    @property
    def _total(self) -> float:
        return sum(run.work + sum(work for _, work in run.finetunings) for run in self.runs)


@contextmanager
def watching(watch: Watch, console: Console) -> Iterator[None]:
    """Show the progress of runs within this context, whoever trains them."""
    stop = threading.Event()
    thread = threading.Thread(
        target=_live if console.is_terminal else _plain, args=(console, watch, stop), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _live(console: Console, watch: Watch, stop: threading.Event) -> None:
    with Live(
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as now:
        while not stop.is_set():
            now.update(view(watch, watch.look(), console.width, console.height), refresh=True)
            stop.wait(POLL_SECONDS)


def _plain(console: Console, watch: Watch, stop: threading.Event) -> None:
    """A line when the text is ready, and when a run starts and ends."""

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    said = {run: progress.mark for run, progress in watch.look().items()}
    is_timed = is_ready = is_stopping = is_last = False
    say(f"{watch.title} All lines: {watch.log}")
    while not is_last:
        is_last = stop.wait(POLL_SECONDS)
        found = watch.look()
        if watch.expected is not None and not is_timed:
            is_timed = True
            say(f"about {clock(watch.expected)} left, by two seconds of steps")
        if watch.prepared is not None and not is_ready:
            is_ready = True
            say(f"text, vocabulary and floors are ready: {clock(watch.prepared)} gone")
        left, share = watch.left(found), watch.share(found)
        about = (
            f"; study {share:.0%}, about {clock(left)} left"
            if left is not None and share < 1
            else ""
        )
        for run, progress in found.items():
            if progress.mark not in (said[run], ""):
                say(f"{run.row}, seed {run.seed}: {progress.mark}, {clock(watch.gone)} gone{about}")
            said[run] = progress.mark
        if signals.exit_code() is not None and not is_stopping:
            is_stopping = True
            say(_of_ctrl_c(found))


def view(watch: Watch, found: dict[WatchedRun, Progress], width: int, height: int) -> Group:
    """The rows by their labels and seeds, a bar a run; what happens now; a bar of the whole study.
    It fits.
    """
    cells = {(run.row, run.seed): progress for run, progress in found.items()}
    seeds = sorted({run.seed for run in watch.runs})
    rows = [*dict.fromkeys(run.row for run in watch.runs)]
    used = min(max(map(len, rows)), max(width // 3, width - SEED_WIDTH * len(seeds)))
    bars_fit = used + SEED_WIDTH * len(seeds) <= width
    most_seeds = max(1, (width - used - 3) // (SEED_WIDTH if bars_fit else 9))
    title = textwrap.wrap(watch.title, width)
    shown = _rows_that_fit(rows, cells, max(1, height - OTHER_LINES - len(title)))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True, max_width=used, overflow="ellipsis")
    for seed in seeds[:most_seeds]:
        table.add_column(f"seed {seed}", no_wrap=True)
    for row in shown:
        table.add_row(
            Text(row),
            *(_cell(cells.get((row, seed), Progress("")), bars_fit) for seed in seeds[:most_seeds]),
        )
    hidden = {"rows": len(rows) - len(shown), "seeds": len(seeds) - most_seeds}
    more = [f"{number} more {name}" for name, number in hidden.items() if number > 0]
    left, share = watch.left(found), watch.share(found)
    text = f"{clock(watch.gone)} gone, " + (
        "starting" if left is None else f"about {clock(left)} left"
    )
    study = Table.grid(padding=(0, 1))
    study.add_row(
        _line(text, "bold"), ProgressBar(total=1, completed=share, width=30), f"{share:4.0%}"
    )
    below = [_of_ctrl_c(found), f"All lines: {watch.log}"]
    texts = [
        _line(text)
        for text in (*(["; ".join(more)] if more else []), "", _now(watch, found), *below)
    ]
    heading = (Text(line, style="bold") for line in title)
    return Group(*heading, study, Text(), table, *texts)


def _of_ctrl_c(found: dict[WatchedRun, Progress]) -> str:
    """What Ctrl-C does; after it, what is waited for."""
    if signals.exit_code() is None:
        return "Ctrl-C keeps everything; the same command goes on."
    running = [f"{run.row}, seed {run.seed}" for run, now in found.items() if now.state in RUNNING]
    waited_for = "; ".join(running) or "processes"
    # The names last, which a narrow terminal may cut.
    return f"Stopping (Ctrl-C again ends what has nothing to save); not ended yet: {waited_for}"


def _line(text: str, style: str = "dim") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _rows_that_fit(
    rows: Sequence[str], cells: dict[tuple[str, int], Progress], most: int
) -> list[str]:
    """As many rows as fit, those that are trained now first, in their order."""
    active = {
        row
        for (row, _), progress in cells.items()
        if progress.state in ("starting", "training", "tuning")
    }
    return sorted(sorted(rows, key=lambda row: row not in active)[:most], key=rows.index)


def _now(watch: Watch, found: dict[WatchedRun, Progress]) -> str:
    """What is trained now, or the last line of the log."""
    trained = [
        f"{run.row}, seed {run.seed}: step {p.step:,}" + (f", loss {p.loss:.2f}" if p.loss else "")
        for run, p in found.items()
        if p.state == "training"
    ]
    return "; ".join(trained[:2]) or next(
        iter(_tail(watch.log)[-1:]), "preparing text, vocabulary and floors"
    )


def _cell(progress: Progress, bar_fits: bool) -> Table | Text:
    if progress.state == "tuning":
        return Text(f"tuning {progress.tuned + 1}", style="cyan")
    if progress.state != "training":
        styles = {"done": "green", "FAILED": "bold red", "waiting": "dim", "stopped": "dim"}
        return Text(progress.state, style=styles.get(progress.state, ""))
    if not bar_fits:
        return Text(f"{progress.share:.0%}")
    grid, bar = (
        Table.grid(padding=(0, 1)),
        ProgressBar(total=1, completed=progress.share, width=BAR),
    )
    grid.add_row(
        bar, f"{progress.share:.0%}", "" if progress.left is None else clock(progress.left)
    )
    return grid


def clock(seconds: float) -> str:
    """Seconds as minutes or hours: 0:24, 12:05, 3:10:00."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
