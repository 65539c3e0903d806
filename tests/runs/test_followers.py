import dataclasses
import signal
import subprocess
import sys
import time

import psutil
import pytest
from command import here
from toy import toy_config, toy_overrides

from albert_lab import rank
from albert_lab.errors import ConfigError
from albert_lab.runs import results, states
from albert_lab.runs import run as runs


def start(folder) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "albert_lab.runs.worker", str(folder)], stderr=subprocess.DEVNULL)


def wait_for_lines(folder, count: int) -> None:
    deadline = time.monotonic() + 240
    while len(results.read_metrics(folder)) < count:
        assert time.monotonic() < deadline, "the run does not continue"
        time.sleep(0.01)


@pytest.mark.kills
def test_a_run_whose_second_process_is_stopped_or_killed_resumes_and_one_finishes_it(corpus, own_home):
    config = toy_config(corpus, "budget.value=400", "machine.processes=2", "machine.log_every_steps=2")
    run = runs.plan(config)
    folder = runs.create(run)
    steps = []
    for number in (signal.SIGTERM, signal.SIGKILL):
        before = len(results.read_metrics(folder))
        leader = start(folder)
        wait_for_lines(folder, before + 2)
        children = psutil.Process(leader.pid).children()
        (follower,) = [child for child in children if str(folder) in child.cmdline()]
        follower.send_signal(number)
        assert leader.wait(timeout=120) == 75
        assert not follower.is_running()
        assert states.state(folder) == "stopped"
        steps.append(max((folder / "checkpoint").glob("step-*")).name)
    assert steps[0] == steps[1] != "step-00000400", "SIGTERM saves a checkpoint; after a kill the run resumes from it"
    alone = runs.plan(toy_config(corpus, "budget.value=400", "machine.log_every_steps=200"))
    assert alone.name == run.name
    assert start(runs.create(alone)).wait(timeout=240) == 0
    record = results.read(folder)
    assert record is not None
    assert record.provenance.processes == 1
    assert record.provenance.processes_from_step == {0: 2, int(steps[0].removeprefix("step-")): 1}


def test_a_run_of_two_processes_records_their_number(corpus, own_home, runs_here):
    done = here("sweep", "seed=0", *toy_overrides(corpus, "budget.value=4", "machine.processes=2"), "--tasks", "none")
    assert done.returncode == 0, done.stderr
    (folder,) = (own_home / "runs").iterdir()
    record = results.read(folder)
    assert record is not None
    assert record.provenance.devices == ("cpu", "cpu")
    assert (record.provenance.processes, record.provenance.nodes, record.training.steps) == (2, 1, 4)


def test_threads_are_divided_among_processes_and_again_if_their_number_changes(corpus, own_home, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_THREADS", "4")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    config = toy_config(corpus, "machine.threads=null")
    folder = runs.create(runs.plan(config))
    assert runs.use_threads(folder, config) == 4
    monkeypatch.setenv("ALBERT_LAB_THREADS", "2")
    assert runs.use_threads(folder, config) == 4, "as it began"
    two = toy_config(corpus, "machine.threads=null", "machine.processes=2")
    assert runs.use_threads(folder, two) == 1
    follower = dataclasses.replace(rank.ALONE, number=1, of=2, local=1, of_machine=2)
    assert runs.use_threads(folder, two, follower) == 1


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 WORLD_SIZE=2"),
        ({"RANK": "0"}, "RANK=0 WORLD_SIZE="),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK=one is not a whole number"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR is not"),
    ],
)
def test_an_environment_that_gives_no_rank_is_refused(monkeypatch, environment, words):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert rank.read() == rank.ALONE
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=words):
        rank.read()


def test_the_number_of_processes_divides_the_batch_and_does_not_change_the_name(corpus):
    with pytest.raises(ConfigError, match=r"machine\.processes=3 does not divide batch_size=16"):
        toy_config(corpus, "machine.processes=3")
    assert runs.plan(toy_config(corpus, "machine.processes=2")).name == runs.plan(toy_config(corpus)).name
    clock = ["budget=wall-clock", "machine.processes=2"]
    assert runs.plan(toy_config(corpus, *clock)).name != runs.plan(toy_config(corpus, clock[0])).name


def test_tasks_of_srun_know_their_rank_and_how_many_are_on_their_node(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    step = {
        "SLURM_PROCID": "5",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "2",
        "SLURM_STEP_NUM_TASKS": "7",
        "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
        "MASTER_ADDR": "n1",
        "MASTER_PORT": "20001",
    }
    for name, value in step.items():
        monkeypatch.setenv(name, value)
    assert rank.read() == rank.Rank(5, 7, 1, 2)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    assert rank.read() == rank.ALONE
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS")  # in the script of a job, beside srun
    assert rank.read() == rank.ALONE
