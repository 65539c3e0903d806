import io
import json

import pytest
from rich.console import Console

from albert_lab.runs.run import RECORD
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
                line = {"event": "training", "share": 0.4, "step": 680, "loss": 5.4, "training_seconds": 30.0}
                text = json.dumps(line | {"seconds_left": 45.0})
                (folder / METRICS).write_text(f'{{"cut\n{text}\n{{"event": "trai')
            if row == "none":
                (folder / RECORD).write_text("{}")
    return found


def test_the_last_whole_line_of_a_log_is_read(runs):
    shares = [live.read(run.folder).share for run in runs]
    assert shares == [1, 1, 0.4, 0.4, 0, 0]
    assert live.read(runs[2].folder).left == 45.0


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_view_fits_and_says_the_time_left(runs, width, tmp_path):
    console = Console(file=io.StringIO(), width=width)
    console.print(live.view("Which loss?", runs, tmp_path / "a.log", 70.0))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert text.count("0:45") == 2
    assert text.count("waiting") == text.count("done") == 2
    assert "1:20 left" in text  # 70 s for 2.8 of 6 runs


def test_without_a_terminal_a_run_has_a_line_a_quarter(runs, tmp_path):
    console = Console(file=io.StringIO(), width=200)
    with live.watching("Which loss?", runs, tmp_path / "a.log", console):
        pass
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 1 + 4
    assert "\x1b" not in "".join(lines)
