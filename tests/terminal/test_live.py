import io
import json
import signal
import time
from collections import deque

import pytest
from rich.console import Console

from albert_lab import signals
from albert_lab.runs.run import FAILURE, LOCK, RECORD
from albert_lab.storage import locked
from albert_lab.terminal import live
from albert_lab.training.log import METRICS


@pytest.fixture
def runs(tmp_path):
    """One run that is done, one in the middle, and one that waits, each with two seeds."""
    found = []
    for row in ("none", "nsp", "sop"):
        for seed in (0, 1):
            folder = tmp_path / f"{row}{seed}"
            folder.mkdir()
            found.append(live.WatchedRun(row, seed, folder))
            if row != "sop":
                line = {
                    "event": "training",
                    "share": 0.4,
                    "step": 680,
                    "loss": 5.4,
                    "training_seconds": 30.0,
                }
                text = json.dumps(line | {"seconds_left": 45.0})
                (folder / METRICS).write_text(f'{{"cut\n{text}\n{{"event": "trai')
            if row == "none":
                (folder / RECORD).write_text("{}")
    return found


def test_the_last_whole_line_of_a_log_is_read(runs):
    found = [live.read(run) for run in runs]
    assert [progress.share for progress in found] == pytest.approx([1, 1, 0.36, 0.36, 0, 0])
    assert [progress.state for progress in found[::2]] == ["done", "stopped", "waiting"]


def watch_of(runs, tmp_path, title="Which loss?", **of):
    return live.Watch(title, runs, tmp_path / "a.log", **of)


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("seeds", [2, 12])
def test_the_view_fits_and_cuts_neither_its_title_nor_the_time_left(runs, seeds, width, tmp_path):
    more = [
        live.WatchedRun(f"row {'long' * 20} {n}", n % seeds, tmp_path / str(n)) for n in range(60)
    ]
    title = "Which loss?  62 rows. This machine is busy: a load of 8.0 on 2 cores." + " now" * 15
    watch = watch_of([*runs, *more], tmp_path, title, expected=5000)
    console = Console(file=io.StringIO(), width=width)
    with locked(runs[2].folder / LOCK, print):
        found = watch.look()
    console.print(live.view(watch, found, width, 24))
    lines = console.file.getvalue().splitlines()  # pyright: ignore
    assert max(map(len, lines)) <= width
    assert len(lines) < 24
    text = " ".join(lines)
    assert title.split() == text.split()[: len(title.split())]
    assert "0:00 gone, about 1:23:20 left" in text


def test_after_ctrl_c_the_view_names_the_runs_that_are_waited_for(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(signals, "_received", [signal.SIGINT])
    watch = watch_of(runs, tmp_path)
    console = Console(file=io.StringIO(), width=200)
    with locked(runs[2].folder / LOCK, print):
        console.print(live.view(watch, watch.look(), 200, 24))
    (line,) = [line for line in console.file.getvalue().splitlines() if "Ctrl-C" in line]  # pyright: ignore
    assert "nsp, seed 0" in line
    assert "nsp, seed 1" not in line


def test_the_time_left_is_that_of_the_work_of_this_start(runs, tmp_path):
    watch = watch_of(runs, tmp_path, expected=7.0)
    before = watch.look()
    assert watch.left(before) == 7.0, "nothing is trained yet: that of the last measured speed"
    for run in runs[2:4]:
        (run.folder / RECORD).write_text("{}")
    watch.started -= 60
    watch.prepared = 0.0
    assert watch.left(watch.look()) == pytest.approx(60 * 2 / 1.28, abs=1)


def test_the_time_left_follows_the_speed_of_the_last_minutes(runs, tmp_path):
    watch = watch_of(runs, tmp_path, expected=7.0)
    watch.look()
    watch.prepared = 0.0
    for run in runs[2:4]:
        (run.folder / RECORD).write_text("{}")
    now = watch.look()
    done = sum(progress.work for progress in now.values())
    watch.started -= 600
    watch.seen = deque([(400.0, done - 0.1)])
    assert watch.left(now) == pytest.approx(200 * (len(runs) - done) / 0.1, rel=0.05)


def test_a_run_without_its_fine_tunings_is_not_done(runs, tmp_path):
    record = tmp_path / "sst2-seed0.json"
    run = live.WatchedRun("none", 0, runs[0].folder, 1.0, ((record, 1.0),))
    assert (live.read(run).state, live.read(run).work) == ("trained", 1.0)
    record.touch()
    assert (live.read(run).state, live.read(run).work) == ("done", 2.0)


def test_without_a_terminal_a_run_has_a_line_when_it_starts_and_one_when_it_ends(
    runs, tmp_path, monkeypatch
):
    monkeypatch.setattr(live, "POLL_SECONDS", 0.02)
    out, last = io.StringIO(), runs[-1].folder

    def is_said(word: str) -> bool:
        return any(word in out.getvalue() or time.sleep(0.02) for _ in range(1000))

    with live.watching(watch_of(runs, tmp_path), Console(file=out, width=200)):
        assert is_said("All lines")
        for share in (0.1, 0.4, 0.6, 0.9):
            (last / METRICS).write_text(
                json.dumps({"event": "training", "share": share, "step": 9}) + "\n"
            )
            assert is_said("sop, seed 1: training")
        (last / RECORD).write_text("{}")
        (runs[-2].folder / FAILURE).write_text("{}")
    assert len(out.getvalue().splitlines()) == 1 + 1 + 2 + 1, out.getvalue()
    assert "\x1b" not in out.getvalue()
