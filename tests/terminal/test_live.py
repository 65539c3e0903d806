import io
import json
import os
import signal
import time

import pytest
from rich.console import Console

from albert_lab import signals
from albert_lab.runs.run import FAILURE, LOCK, RECORD
from albert_lab.storage import locked
from albert_lab.terminal import live
from albert_lab.training.log import METRICS

LINE = {"event": "training", "share": 0.4, "step": 680, "loss": 5.4, "seconds_left": 45.0}


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
                lines = f'{{"cut\n{json.dumps(LINE)}\n{{"event": "trai'
                (folder / METRICS).write_text(lines)
            if row == "none":
                (folder / RECORD).write_text("{}")
    return found


@pytest.fixture
def watch(runs, tmp_path):
    return live.Watch("Which loss?", runs, tmp_path / "a.log", expected=5000)


def shown(watch, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    with locked(watch.runs[2].folder / LOCK, print):
        watch.look()
    console.print(live.view(watch, width))
    return console.file.getvalue().splitlines()  # pyright: ignore


def test_the_last_whole_line_of_a_log_is_read(runs):
    found = [live.read(run) for run in runs]
    assert [progress.work for progress in found] == pytest.approx([1, 1, 0.36, 0.36, 0, 0])
    assert [progress.state for progress in found[::2]] == ["done", "stopped", "waiting"]


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("seeds", [2, 12])
def test_the_view_fits_and_cuts_neither_its_title_nor_the_time_left(watch, seeds, width, tmp_path):
    watch.runs += [
        live.WatchedRun(f"row {'long' * 20} {number}", number % seeds, tmp_path / str(number))
        for number in range(60)
    ]
    watch.title += " This machine is busy: a load of 8.0 on 2 cores." + " now" * 15
    lines = shown(watch, width)
    assert max(map(len, lines)) <= width
    words = watch.title.split()
    assert " ".join(lines).split()[: len(words)] == words
    assert any(line.startswith("0 s gone, about 83 min left") for line in lines[1:3])
    assert lines.index(next(line for line in lines if "seed 0 36% 45 s" in line)) < 12


def test_after_ctrl_c_the_view_names_the_runs_that_are_waited_for(watch, monkeypatch):
    monkeypatch.setattr(signals, "_received", [signal.SIGINT])
    (line,) = [line for line in shown(watch, 200) if "Ctrl-C" in line]
    assert "nsp, seed 0" in line
    assert "nsp, seed 1" not in line


def test_the_time_left_is_expected_first_and_then_follows_the_speed_of_the_last_minutes(
    watch, monkeypatch
):
    now = [watch.started]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    shown(watch, 100)
    done = watch.done
    assert watch.left == 5000, "nothing is trained yet"
    # Six runs of work 1, of which 0.04 are done in a second, and later 0.01.
    for seconds, speed in ((20, 0.04), (1200, 0.0001)):
        for _ in range(seconds):
            now[0] += 1
            done += speed
            monkeypatch.setattr(
                live, "read", lambda run, done=done: live.Progress("training", done / 6, 0.5)
            )
            watch.look()
        assert watch.left == pytest.approx((6 - done) / speed, rel=0.2)
    watch.now[watch.runs[0]] = live.Progress("training", 0.5, 0.5, left=1e6)
    assert watch.left == 1e6, "that of the slowest run"


def test_the_last_run_takes_the_time_of_one_run_although_two_were_as_fast_together(
    watch, monkeypatch
):
    now = [watch.started]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(live, "read", lambda run: live.Progress("tuning", now[0] / 10, 0.5))
    now[0], watch.runs = 0.0, watch.runs[:2]
    watch.look()
    now[0] = 5.0
    watch.look()
    watch.now[watch.runs[0]] = live.Progress("done", 1.0, 1.0)
    assert watch.left == pytest.approx(5)


def test_a_run_without_its_fine_tunings_is_not_done(runs, tmp_path):
    record = tmp_path / "sst2-seed0.json"
    record.touch()
    os.utime(record, (0, 0))  # of other settings
    run = live.WatchedRun("none", 0, runs[0].folder, 1.0, ((record, 1.0),))
    assert (live.read(run).state, live.read(run).work) == ("trained", 1.0)
    record.touch()
    assert (live.read(run).state, live.read(run).work) == ("done", 2.0)


def test_without_a_terminal_each_event_has_one_line(watch, monkeypatch):
    monkeypatch.setattr(live, "POLL_SECONDS", 0.02)
    out, last = io.StringIO(), watch.runs[-1].folder

    def is_said(word: str) -> bool:
        return any(word in out.getvalue() or time.sleep(0.02) for _ in range(1000))

    with live.watching(watch, Console(file=out, width=200)):
        assert is_said("All lines")
        with locked(last / LOCK, print):
            for share in (0.1, 0.4, 0.6, 0.9):
                (last / METRICS).write_text(json.dumps(LINE | {"share": share}) + "\n")
                assert is_said("sop, seed 1: training; study ")
        (last / RECORD).write_text("{}")
        (watch.runs[-2].folder / FAILURE).write_text("{}")
    assert len(out.getvalue().splitlines()) == 1 + 1 + 2 + 1, out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_a_view_that_is_too_high_is_cut_and_removed_at_the_end(watch, tmp_path):
    watch.runs += [live.WatchedRun(f"row {number}", 0, tmp_path) for number in range(60)]
    out = io.StringIO()
    with live.watching(watch, Console(file=out, width=80, height=24, force_terminal=True)):
        while "gone" not in out.getvalue():
            time.sleep(0.02)
    written = out.getvalue()
    assert written.count("\n") <= 24 * written.count("gone")
    assert written.count("\x1b[2K") >= written.count("\n"), "each line is removed"
