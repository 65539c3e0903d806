from pathlib import Path

import pytest
import torch

from albert_lab import machine
from albert_lab.errors import ConfigError


@pytest.fixture
def eight(monkeypatch):
    monkeypatch.setattr(machine, "_DRIVERS", [Path("/dev/null")])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,GPU-7")


def test_gpus_are_counted_and_named_by_torch(eight, monkeypatch):
    # the third of CUDA_VISIBLE_DEVICES does not exist
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert machine.gpus() == ["0", "1"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert machine.gpus() == ["0", "1"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert machine.gpus() == []


def test_each_job_has_separate_gpus_if_there_are_enough_and_shares_one_otherwise(
    eight, monkeypatch
):
    assert machine.gpus_of_jobs(2) == [["0", "1", "2", "3"], ["4", "5", "6", "GPU-7"]]
    assert machine.gpus_of_jobs(3) == [["0", "1"], ["2", "3"], ["4", "5"]]
    for count, expected in (2, [["0"], ["1"], ["0"]]), (0, [[], [], []]):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        assert machine.gpus_of_jobs(3) == expected


def test_the_number_of_jobs_is_given_or_follows_from_the_gpus_of_a_run(eight, monkeypatch):
    assert [len(machine.gpus_of_jobs(0, processes)) for processes in (1, 2, 16)] == [8, 4, 1]
    assert len(machine.gpus_of_jobs(3, 2)) == 3
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert len(machine.gpus_of_jobs(0, 1)) == 1


def test_a_process_has_the_cores_of_its_slurm_job(monkeypatch):
    cores = machine.cores()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    assert machine.cores() == 1
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "10000")
    assert machine.cores() == cores
    for text in ("abc", "-1", "1.5", "9" * 20):
        monkeypatch.setenv("SLURM_CPUS_PER_TASK", text)
        with pytest.raises(ConfigError, match=f"SLURM_CPUS_PER_TASK={text}"):
            machine.cores()
