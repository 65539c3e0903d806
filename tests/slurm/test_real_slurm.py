"""Studies on a real Slurm of two nodes: `make slurm-test`. Minutes each, since Slurm counts time
limits in minutes.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from command import there
from safetensors.torch import load
from toy import toy_overrides

from albert_lab.runs import results, states


def squeue():
    result = subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%i|%T|%N"], capture_output=True, text=True
    )
    return [line.split("|") for line in result.stdout.splitlines()]


def until(condition, seconds=600):
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.5)
    return result


@pytest.fixture(autouse=True)
def empty_queue(slurm):
    """A test ends when its runs have ended; Slurm may still clean up after their jobs."""
    until(lambda: not squeue())


def submitted(*command: str, options: str = "--time=10") -> None:
    done = there(*command, "--tasks", "none", "--slurm", options)
    assert done.returncode == 0, done.stderr


def run_folders(home: Path) -> list[Path]:
    return sorted((home / "runs").glob("*/"))


def steps(folder: Path) -> list[int]:
    return [line["step"] for line in results.read_metrics(folder) if line["event"] == "training"]


def weights(folder: Path) -> bytes:
    return max((folder / "checkpoint").rglob("model.safetensors")).read_bytes()


def test_a_table_of_the_paper_is_made_by_a_throttled_array_and_the_same_command_reports_it(
    slurm, own_home
):
    command = ["sop-vs-nsp", "scale=smoke", "seed=0"]
    submitted(*command, "--jobs", "1")
    most = 0
    while jobs := squeue():
        most = max(most, sum(state == "RUNNING" for _, state, _ in jobs))
        time.sleep(0.5)
    assert most == 1
    reported = there(*command, "--tasks", "none", "--slurm", "--time=10")
    assert reported.returncode == 0, reported.stderr
    assert "sop-vs-nsp/report." in reported.stdout
    assert {states.state(folder) for folder in run_folders(own_home)} == {"done"}


def test_a_chain_is_submitted_once_and_trains_by_its_dependencies(slurm, own_home, corpus):
    command = ["depth", *toy_overrides(corpus)]
    submitted(*command)
    jobs = len(squeue())
    shown = json.loads(there("status", "--json").stdout)
    assert {row["state"] for row in shown} <= {"missing", "running", "done"}
    submitted(*command)
    assert len(squeue()) <= jobs, "nothing twice"
    until(lambda: not squeue())
    assert {states.state(folder) for folder in run_folders(own_home)} == {"done"}


def test_a_run_goes_back_into_the_queue_near_its_limit_and_ends_bit_identical(
    slurm, own_home, corpus, tmp_path_factory, monkeypatch
):
    command = ["pretrain", *toy_overrides(corpus, "budget.value=1500", "dropout=0.1")]
    assert there(*command, "--tasks", "none").returncode == 0
    (whole,) = run_folders(own_home)
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path_factory.mktemp("second")))
    submitted(*command)
    (again,) = until(lambda: run_folders(Path(os.environ["ALBERT_LAB_HOME"])))
    until(lambda: steps(again))
    ((number, _, _),) = squeue()
    # as Slurm does near a time limit
    subprocess.run(["scancel", "--batch", "--signal=USR1", number], check=True)
    until(lambda: states.state(again) == "done")
    assert weights(again) == weights(whole)
    record, expected = results.read(again), results.read(whole)
    assert record
    assert expected
    assert record.scores == expected.scores


def test_a_cancelled_run_saves_its_state_stays_cancelled_and_is_submitted_again(
    slurm, own_home, corpus
):
    command = ["pretrain", *toy_overrides(corpus, "budget.value=100000")]
    submitted(*command)
    (folder,) = run_folders(own_home)
    until(lambda: steps(folder))
    ((number, _, _),) = squeue()
    subprocess.run(["scancel", number], check=True)
    until(lambda: not squeue())
    assert list((folder / "checkpoint").glob("step-*")), "it saved"
    assert states.state(folder) == "stopped"
    submitted(*command)
    assert squeue()
    subprocess.run(["scancel", "--user", str(os.getuid())], check=True)


def test_a_run_whose_node_is_lost_goes_on_elsewhere(slurm, own_home, corpus):
    submitted(
        "pretrain", *toy_overrides(corpus, "budget.value=4000", "machine.checkpoint_seconds=1")
    )
    (folder,) = run_folders(own_home)
    until(lambda: steps(folder))
    ((_, _, node),) = squeue()
    slurm("kill", node)  # the node's daemon; what runs there goes on, as behind a broken network
    until(lambda: states.state(folder) == "done")
    slurm("revive", node)
    assert steps(folder) == sorted(set(steps(folder))), "no two processes made it at once"


def test_two_processes_of_one_run_end_as_one_would(
    slurm, own_home, corpus, tmp_path_factory, monkeypatch
):
    toy = toy_overrides(corpus, "budget.value=100", "machine.micro_batch_size=4")
    submitted("pretrain", *toy, "machine.processes=2", options="--cpus-per-task=2 --time=10")
    (folder,) = run_folders(own_home)
    until(lambda: states.state(folder) == "done")
    assert (record := results.read(folder))
    assert record.provenance.processes == 2
    monkeypatch.setenv("ALBERT_LAB_HOME", str(tmp_path_factory.mktemp("alone")))
    assert there("pretrain", *toy, "--tasks", "none").returncode == 0
    (alone,) = run_folders(Path(os.environ["ALBERT_LAB_HOME"]))
    for name, tensor in load(weights(alone)).items():
        assert (load(weights(folder))[name] - tensor).abs().max() < 1e-4
