import os
import shutil
import threading
import time

import pytest
from filelock import FileLock, Timeout

from albert_lab import in_use, locks, machine, owners, paths, squeue
from albert_lab.runs import cleaning

DEAD = f"999999999@{owners.own().partition('@')[2]}"


@pytest.fixture
def queue(monkeypatch):
    """Sets the numbers of the jobs that Slurm lists; None: Slurm does not answer."""

    def say(*numbers):
        listed = None if numbers == (None,) else dict.fromkeys(numbers)
        monkeypatch.setattr(squeue, "jobs", lambda *_, **__: listed)

    say(None)
    return say


def test_a_lock_is_acquired_and_released_with_the_name_of_its_owner(tmp_path, queue):
    file = tmp_path / "lock"
    with locks.locked(file, pytest.fail):
        assert locks.is_locked(file)
        assert locks.owner_file(file).read_text() == owners.own()
    assert not locks.is_locked(file)
    assert not locks.owner_file(file).exists()


def test_the_name_of_a_dead_process_of_this_host_is_ignored(tmp_path, queue):
    file = tmp_path / "lock"
    locks.owner_file(file).write_text(DEAD)
    file.touch()
    assert not locks.is_locked(file)
    with locks.locked(file, pytest.fail):
        assert locks.is_locked(file)


def test_the_name_of_another_host_is_valid_as_long_as_it_is_touched(tmp_path, queue, monkeypatch):
    monkeypatch.setattr(locks, "ABANDONED_SECONDS", 0.6)
    monkeypatch.setattr(locks, "_POLL_SECONDS", 0.02)
    file, said, until = tmp_path / "lock", [], time.monotonic() + 1
    file.touch()
    locks.owner_file(file).write_text("1@elsewhere")  # a process number that also exists here

    def live():
        while time.monotonic() < until:
            os.utime(locks.owner_file(file))
            time.sleep(0.05)

    other = threading.Thread(target=live)
    other.start()
    assert locks.is_locked(file)
    with locks.locked(file, lambda: said.append("waiting")):
        assert time.monotonic() > until
    other.join()
    assert said == ["waiting"]


def test_waiting_for_another_host_can_be_stopped(tmp_path, queue):
    locks.owner_file(tmp_path / "lock").write_text("999999999@elsewhere")
    with pytest.raises(Timeout), locks.locked(tmp_path / "lock", lambda: None, lambda: True):
        pass


def test_a_lock_of_a_job_that_slurm_no_longer_lists_is_ignored(tmp_path, queue, monkeypatch):
    monkeypatch.setattr(locks, "_POLL_SECONDS", 0.01)
    assert owners.has_ended("4711.12@elsewhere") is None
    queue("12")
    assert owners.has_ended("4711.12@elsewhere") is False
    queue("13")
    assert owners.has_ended("4711.12@elsewhere") is True
    locks.owner_file(tmp_path / "lock").write_text("4711.12@elsewhere")
    with locks.locked(tmp_path / "lock", lambda: None):
        pass
    monkeypatch.setenv("SLURM_JOB_ID", "12")  # requeued after its node was lost: the first process may still run
    assert owners.has_ended("4711.12@elsewhere") is None


def test_only_one_of_two_processes_takes_an_abandoned_name(tmp_path, queue):
    file = tmp_path / "lock"
    locks.owner_file(file).write_text("1@elsewhere")
    seen = locks._look(file)
    locks.owner_file(file).write_text("2@elsewhere")  # the other process was faster
    locks._void(file, seen)
    assert locks.owner_file(file).read_text() == "2@elsewhere"


def test_a_lock_works_on_a_file_system_without_locks(tmp_path, queue, monkeypatch):
    def acquire(*_, **__):
        raise NotImplementedError

    monkeypatch.setattr(FileLock, "acquire", acquire)
    with locks.locked(tmp_path / "lock", pytest.fail):
        assert not locks._sign(tmp_path / "lock", FileLock(tmp_path / "lock"))


def test_a_mark_of_another_host_is_valid_while_it_is_touched(tmp_path, queue):
    folder = tmp_path / "shards"
    mark = tmp_path / "shards.in-use-4711@elsewhere"
    mark.touch()
    assert in_use.is_used(folder)
    assert mark.exists()
    os.utime(mark, (0, 0))
    assert not in_use.is_used(folder)
    assert not mark.exists()


def test_cleaning_keeps_folders_that_another_process_uses(own_home, queue, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(own_home / "cache"))
    used, free = (paths.cache() / "shards" / name for name in ("used", "free"))
    used.mkdir(parents=True)
    free.mkdir()
    used.with_name("used.in-use-7@elsewhere").touch()
    assert cleaning.garbage(cache=True, checkpoints=True).keys() == {free}
    assert cleaning.kept(cache=True, checkpoints=True) == [used]


def test_a_checkpoint_whose_removal_was_killed_is_removed_by_the_next_cleaning(own_home, monkeypatch):
    left = paths.runs() / "run" / "checkpoint"
    left.mkdir(parents=True)
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda _folder: None)
        cleaning.free([left])
    monkeypatch.setattr(owners, "is_abandoned", lambda *_arguments: True)
    (found,) = cleaning.garbage(cache=False, checkpoints=False)
    assert found.name.startswith("checkpoint.partial-")
    cleaning.free([found])
    assert not list((paths.runs() / "run").iterdir())


def test_a_process_uses_the_cores_of_its_slurm_job(monkeypatch):
    there = machine.cores()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    assert machine.cores() == there
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    assert machine.cores() == 1
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "10000")
    assert machine.cores() == there
