"""Studies on a real Slurm of two nodes: `make slurm-test`. Minutes each, since Slurm counts time limits in minutes."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from command import there
from safetensors.torch import load
from toy import toy_overrides

from albert_lab.runs import results, states

POLL = "launcher.poll_seconds=1"


def squeue(*arguments):
    result = subprocess.run(["squeue", "--noheader", "--format=%i|%T|%N", *arguments], capture_output=True, text=True)
    return [line.split("|") for line in result.stdout.splitlines()]


def until(condition, seconds=600):
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.5)
    return result


@pytest.fixture(autouse=True)
def empty_queue(slurm):
    """A study ends when its runs have ended; Slurm may still clean up after their jobs."""
    until(lambda: not squeue())


def run_folders(home: Path) -> list[Path]:
    return sorted((home / "runs").glob("*/"))


def steps(folder: Path) -> int:
    lines = results.read_metrics(folder)
    return max((line["step"] for line in lines), default=0)


def weights(folder: Path) -> bytes:
    return max((folder / "checkpoint").rglob("model.safetensors")).read_bytes()


def test_a_table_of_the_paper_is_made_by_jobs_and_ends_in_a_report(slurm, own_home):
    done = there("sop-vs-nsp", "scale=smoke", "--tasks", "none", "--slurm", "--time=10", POLL)
    assert done.returncode == 0, done.stderr
    assert len(run_folders(own_home)) == 3
    assert "Claims of the paper:" in done.stdout
    assert (own_home / "reports" / "smoke-sotu" / "sop-vs-nsp" / "report.md").exists()
    assert not squeue()


def test_a_chain_is_left_to_itself_and_joined_by_the_same_command(slurm, own_home, corpus):
    command = ["depth", *toy_overrides(corpus), "--tasks", "none", "--slurm", "--time=10", POLL]
    left = there(*command, "--detach")
    assert left.returncode == 0, left.stderr
    numbers = re.findall(r": job (\w+)$", left.stderr, re.MULTILINE)
    assert len(numbers) == 6
    shown = json.loads(there(*command, "--list", "--json").stdout)
    assert {row["state"] for row in shown} & {"queued", "running"}
    joined = there(*command)
    assert joined.returncode == 0, joined.stderr
    assert not set(re.findall(r": job (\w+)$", joined.stderr, re.MULTILINE)) - set(numbers)
    assert all(states.state(folder) == "done" for folder in run_folders(own_home))


def test_a_run_that_is_longer_than_its_limit_is_requeued_and_ends_bit_identical(
    slurm, own_home, corpus, tmp_path_factory, monkeypatch
):
    command = ["pretrain", *toy_overrides(corpus, "budget.value=1000", "dropout=0.1"), "--tasks", "none"]
    began = time.monotonic()
    plain = there(*command)
    assert plain.returncode == 0, plain.stderr
    whole_seconds = time.monotonic() - began
    (whole,) = run_folders(own_home)
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path_factory.mktemp("second")))
    record = results.read(whole)
    assert record
    # A limit is of whole minutes; the signal comes so far ahead of it that a third of the training is done, or all of
    # it if the machine has become three times as fast. Each further job has as long.
    seconds = math.ceil(whole_seconds - record.training.training_seconds * 2 / 3)
    minutes = math.ceil((seconds + 10) / 60)
    limited = there(*command, "--slurm", f"--time={minutes} --signal=B:USR1@{minutes * 60 - seconds}", POLL)
    assert limited.returncode == 0, limited.stderr
    (again,) = run_folders(Path(os.environ["ALBERT_LAB_HOME"]))
    (log,) = again.glob("slurm-*.out")
    assert "back into the queue" in log.read_text()
    assert weights(again) == weights(whole)
    assert (result := results.read(again))
    assert result.scores == record.scores


def test_a_cancelled_run_saves_its_state_and_stays_cancelled(slurm, own_home, corpus):
    command = ["pretrain", *toy_overrides(corpus, "budget.value=100000"), "--tasks", "none", "--slurm", "--time=10"]
    waiting = subprocess.Popen(
        [sys.executable, "-m", "albert_lab.cli", *command, POLL], stderr=subprocess.PIPE, text=True
    )
    until(lambda: run_folders(own_home) and steps(run_folders(own_home)[0]) > 0)
    (folder,) = run_folders(own_home)
    ((number, _, _),) = squeue()
    subprocess.run(["scancel", number], check=True)
    waiting.communicate(timeout=120)
    assert waiting.returncode == 75
    assert list((folder / "checkpoint").glob("step-*")), "it saved"
    time.sleep(5)
    assert not squeue(), "it stays cancelled"
    assert states.state(folder) == "stopped"


def test_ctrl_c_leaves_the_jobs_and_prints_the_line_that_ends_them(slurm, own_home, corpus):
    command = ["pretrain", *toy_overrides(corpus, "budget.value=100000"), "--tasks", "none", "--slurm", "--time=10"]
    waiting = subprocess.Popen(
        [sys.executable, "-m", "albert_lab.cli", *command, POLL], stderr=subprocess.PIPE, text=True
    )
    ((number, _, _),) = until(squeue)
    time.sleep(3)
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 130
    assert f"to end them: scancel {number}" in said
    assert squeue()
    subprocess.run(["scancel", number], check=True)
    until(lambda: not squeue())


def test_a_run_whose_node_is_lost_goes_on_elsewhere(slurm, own_home, corpus):
    command = ["pretrain", *toy_overrides(corpus, "budget.value=4000", "machine.checkpoint_seconds=1")]
    left = there(*command, "--tasks", "none", "--slurm", "--time=10", "--detach")
    assert left.returncode == 0, left.stderr
    (folder,) = run_folders(own_home)
    until(lambda: steps(folder) > 0)
    ((_, _, node),) = squeue()
    slurm("kill", node)  # the node's daemon; what runs there goes on, as behind a broken network
    done = there(*command, "--tasks", "none", "--slurm", "--time=10", POLL)
    slurm("revive", node)
    assert done.returncode == 0, done.stderr
    assert states.state(folder) == "done"
    lines = [line["step"] for line in results.read_metrics(folder) if line["event"] == "training"]
    assert lines == sorted(set(lines)), "no two processes made it at once"


def test_a_run_on_two_nodes_goes_back_into_the_queue_and_ends_as_one_process_would(
    slurm, own_home, corpus, tmp_path_factory, monkeypatch
):
    toy = toy_overrides(corpus, "budget.value=300", "dropout=0.1", "machine.micro_batch_size=4")
    command = ["pretrain", *toy, "--tasks", "none", "--slurm", "--nodes=2 --ntasks-per-node=1 --time=10"]
    left = there(*command, "--detach")
    assert left.returncode == 0, left.stderr
    (folder,) = run_folders(own_home)
    until(lambda: steps(folder) > 0)
    ((number, _, _),) = squeue()
    subprocess.run(["scancel", "--batch", "--signal=USR1", number], check=True)  # as Slurm does near a time limit
    done = there(*command, POLL)
    assert done.returncode == 0, done.stderr
    (log,) = folder.glob("slurm-*.out")
    assert "back into the queue" in log.read_text()
    assert (record := results.read(folder))
    assert record.provenance.processes == 2
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path_factory.mktemp("alone")))
    assert there("pretrain", *toy, "--tasks", "none").returncode == 0
    (alone,) = run_folders(Path(os.environ["ALBERT_LAB_HOME"]))
    for name, tensor in load(weights(alone)).items():
        torch.testing.assert_close(load(weights(folder))[name], tensor, rtol=0, atol=1e-4)


def test_fifty_runs_are_submitted_at_once(slurm, own_home, corpus):
    seeds = ",".join(map(str, range(50)))
    began = time.monotonic()
    left = there("sweep", *toy_overrides(corpus), f"seed={seeds}", "--slurm", "--time=10", "--detach")
    assert left.returncode == 0, left.stderr
    assert "50 in the queue" in left.stderr
    print(f"50 runs planned and submitted in {time.monotonic() - began:.0f} s")
    numbers = re.findall(r": job (\w+)$", left.stderr, re.MULTILINE)
    assert len(set(numbers)) == 50
    subprocess.run(["scancel", *numbers], check=True)
    until(lambda: not squeue())
