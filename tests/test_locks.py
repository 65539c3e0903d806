import shutil
import subprocess
import sys

import pytest
from filelock import Timeout

from albert_lab import locks, paths
from albert_lab.runs import cleaning


def other(*lines: str) -> subprocess.Popen[bytes]:
    """Another process that has executed some lines and goes on until it is told to end."""
    script = "\n".join(["import pathlib", "from albert_lab import locks", *lines, "print(flush=True)", "input()"])
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    return process


def test_a_lock_is_held_within_its_context_only(tmp_path):
    file = tmp_path / "lock"
    with locks.locked(file, pytest.fail):
        assert locks.is_locked(file)
    assert not locks.is_locked(file)


def test_the_lock_of_a_killed_process_is_free_at_once_and_waiting_for_a_living_one_can_be_stopped(tmp_path):
    file, said = tmp_path / "lock", []
    holder = other(f"held = locks.locked(pathlib.Path({str(file)!r}), print)", "held.__enter__()")
    with pytest.raises(Timeout), locks.locked(file, lambda: said.append("waits"), lambda: True):
        pass
    assert said == ["waits"]
    holder.kill()
    holder.communicate()
    with locks.locked(file, pytest.fail):
        assert locks.is_locked(file)


def test_a_folder_is_in_use_until_all_that_read_it_have_ended_and_is_not_cleaned(own_home, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(own_home / "cache"))
    used, free = (paths.cache() / "shards" / name for name in ("used", "free"))
    for folder in (used, free):
        folder.mkdir(parents=True)
    readers = [other(f"locks.mark_used(pathlib.Path({str(used)!r}))") for _ in range(2)]
    for reader in readers:
        assert locks.is_used(used)
        assert cleaning.find_garbage(cache=True, checkpoints=True).keys() == {free}
        assert cleaning.find_used(cache=True, checkpoints=True) == [used]
        reader.communicate(b"\n")
    assert not locks.is_used(used)


def test_a_checkpoint_whose_removal_was_killed_is_removed_by_the_next_cleaning(own_home, monkeypatch):
    left = paths.runs() / "run" / "checkpoint"
    left.mkdir(parents=True)
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda *_, **__: None)
        cleaning.free([left])
    (result,) = cleaning.find_garbage(cache=False, checkpoints=False)
    assert result.name.startswith(".checkpoint.partial-")
    cleaning.free([result])
    assert not list((paths.runs() / "run").iterdir())
