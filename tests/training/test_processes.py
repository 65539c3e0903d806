"""Several processes of one run, started by torchrun as the launcher does."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import torch
from command import own_signals
from safetensors.torch import load_file
from toy import toy_config

from albert_lab.errors import STOPPED, UNWRITTEN
from albert_lab.runs import results, states, together, worker
from albert_lab.runs import run as runs

# Micro-batches of a quarter of the batch, so that they, and their dropout, are the same for any
# number of processes.
OVERRIDES = ["dropout=0.1", "machine.micro_batch_size=4", "machine.log_every_steps=1"]


def train_by_two(folder) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "albert_lab.runs.together", "2", str(folder)]
    return subprocess.Popen(command)  # pytest shows its stderr if the test fails


def weights(folder) -> dict[str, torch.Tensor]:
    return load_file(max((folder / "checkpoint").glob("step-*")) / "model.safetensors")


def losses(folder) -> list[float]:
    return [line["loss"] for line in results.read_metrics(folder) if line["event"] == "training"]


@pytest.fixture
def alone(corpus, own_home, monkeypatch, tmp_path):
    """Begins a run in a home of its own after it was trained by one process; gives both folders."""

    def begin(*overrides: str):
        folder = runs.create(runs.plan(toy_config(corpus, *OVERRIDES, *overrides)))
        with own_signals():
            assert worker.main(folder) == 0
        monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path / "together"))
        return folder, runs.create(
            runs.plan(toy_config(corpus, *OVERRIDES, *overrides, "machine.processes=2"))
        )

    return begin


def test_two_processes_train_on_the_same_batches_as_one(alone):
    one, two = alone("budget.value=8")
    assert train_by_two(two).wait() == 0
    torch.testing.assert_close(losses(two), losses(one), rtol=0, atol=1e-6)
    for name, tensor in weights(one).items():
        torch.testing.assert_close(weights(two)[name], tensor, rtol=0, atol=1e-5)
    record, expected = results.read(two), results.read(one)
    assert record
    assert expected
    assert {name: score.value for name, score in record.scores.items()} == {
        name: score.value for name, score in expected.scores.items()
    }
    assert (record.provenance.processes, record.provenance.devices) == (2, ("cpu", "cpu"))


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([STOPPED, 2], 2),  # one failed, and the other one lost it
        ([UNWRITTEN, -signal.SIGTERM], UNWRITTEN),
        ([STOPPED, -signal.SIGTERM], STOPPED),
        ([-signal.SIGKILL, STOPPED], 137),
    ],
)
def test_the_exit_code_is_that_of_the_process_that_ended_the_others(codes, code):
    assert together.code_of(codes) == code


@pytest.mark.kills
def test_a_run_whose_second_process_is_stopped_or_killed_goes_on_from_its_checkpoint(alone):
    one, two = alone("budget.value=300", "machine.checkpoint_seconds=0.5")
    for number, code in ((signal.SIGTERM, STOPPED), (signal.SIGKILL, 128 + signal.SIGKILL)):
        before = len(losses(two))
        torchrun = train_by_two(two)
        deadline = time.monotonic() + 240
        while len(losses(two)) < before + 5:
            assert time.monotonic() < deadline, "the run does not continue"
            time.sleep(0.05)
        workers = psutil.Process(torchrun.pid).children()
        (second,) = [worker for worker in workers if worker.environ().get("RANK") == "1"]
        second.send_signal(number)
        assert torchrun.wait(timeout=120) == code
        assert not second.is_running()
        assert states.state(two) == "stopped"
    assert train_by_two(two).wait(timeout=240) == 0
    for name, tensor in weights(one).items():
        torch.testing.assert_close(weights(two)[name], tensor, rtol=0, atol=1e-4)


def test_threads_are_divided_among_processes_and_again_if_their_number_changes(
    corpus, own_home, monkeypatch
):
    monkeypatch.setenv("ALBERT_LAB_THREADS", "4")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    config = toy_config(corpus, "machine.threads=null")
    folder = runs.create(runs.plan(config))
    assert runs.use_threads(folder, config) == 4
    monkeypatch.setenv("ALBERT_LAB_THREADS", "2")
    assert runs.use_threads(folder, config) == 4, "as it began"
    two = toy_config(corpus, "machine.threads=null", "machine.processes=2")
    assert runs.use_threads(folder, two) == 1
    assert os.environ["OMP_NUM_THREADS"] == "1"
