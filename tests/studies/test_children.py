"""Child processes in place of runs: a few lines of Python each."""

import os
import signal
import sys
import threading
import time

import pytest
from command import own_signals

from albert_lab import errors, machine, signals
from albert_lab.studies import children
from albert_lab.studies.jobs import Job

STOP_ITSELF = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
# Ends at the signal of this number, after it has noted each.
COUNTS = """
import signal, sys, time
got = []
signal.signal(signal.SIGTERM, lambda *_: got.append(1) or open(sys.argv[1], "a").write("x"))
open(sys.argv[2], "w").close()
while len(got) < int(sys.argv[3]):
    time.sleep(0.02)
sys.exit(75)
"""


def counting(folder, last: int) -> Job:
    """A run that ends at its last signal."""
    folder.mkdir()
    files = [str(folder / "signals"), str(folder / "begun")]
    return Job(folder, [sys.executable, "-S", "-c", COUNTS, *files, str(last)])


def wait_for(file) -> None:
    while not file.exists():
        time.sleep(0.02)


def script(folder, text: str) -> Job:
    """A run that is a script of Python."""
    return Job(folder, [sys.executable, "-S", "-c", text])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"raise SystemExit({errors.STOPPED})", errors.STOPPED),
        (f"raise SystemExit({errors.INTERRUPTED})", errors.INTERRUPTED),
        (STOP_ITSELF, errors.STOPPED),  # before it listens
    ],
)
def test_a_stopped_child_leaves_the_sweep_unfinished_and_did_not_fail(tmp_path, text, code):
    assert children.launch([script(tmp_path, text)], 1, lambda *_: pytest.fail("said")) == code


def test_a_run_of_this_machine_does_not_take_the_rank_of_another_program(monkeypatch):
    for variable in machine.RANK:
        monkeypatch.setenv(variable, "4")
    assert not {*machine.RANK} & children.environment(1).keys()


def test_an_error_of_the_study_ends_the_other_runs_first(tmp_path):
    other = counting(tmp_path / "other", 1)
    broken = script(tmp_path, "exit(1)")

    def on_end(_job, _code):
        wait_for(other.folder / "begun")
        raise errors.DamagedFileError(tmp_path, "a damaged record")

    with pytest.raises(errors.DamagedFileError):
        children.launch([other, broken], 2, on_end)
    assert (other.folder / "signals").read_text() == "x", "it could save, and it has ended"


def test_each_signal_is_passed_on_to_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(signals, "_received", [])
    job = counting(tmp_path / "run", 2)

    def interrupt():
        wait_for(job.folder / "begun")
        os.kill(os.getpid(), signal.SIGINT)
        wait_for(job.folder / "signals")
        os.kill(os.getpid(), signal.SIGINT)

    with own_signals():
        threading.Thread(target=interrupt).start()
        assert children.launch([job], 1, lambda *_: None) == errors.INTERRUPTED
    assert (job.folder / "signals").read_text() == "xx"


def test_runs_that_share_a_gpu_know_how_many_they_are(monkeypatch):
    monkeypatch.setattr(children, "gpus_of_jobs", lambda _: [["0"], ["1"], ["0"]])
    environments = [children.environment(3, slot) for slot in range(3)]
    assert [own[machine.JOBS_ON_GPU] for own in environments] == ["2", "1", "2"]
