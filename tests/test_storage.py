import errno
import os
import subprocess
import sys

import pytest
from filelock import Timeout

from albert_lab import storage


def test_an_atomic_write_leaves_no_other_file(tmp_path):
    storage.write_atomically(tmp_path / "a.txt", "one")
    storage.write_atomically(tmp_path / "a.txt", "two")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "two")]


def test_if_the_disk_is_full_the_file_is_named_and_unchanged(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    storage.write_atomically(tmp_path / "a.txt", "one")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*a\.txt"):
        storage.write_atomically(tmp_path / "a.txt", "two")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "one")]


def test_the_lock_of_a_killed_process_is_free_at_once_and_waiting_for_a_living_one_can_be_stopped(
    tmp_path,
):
    file, said = tmp_path / "lock", []
    script = (
        "import sys; from pathlib import Path; from albert_lab.storage import locked\n"
        "with locked(Path(sys.argv[1]), print): print(flush=True), input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout
    holder.stdout.readline()
    assert storage.is_locked(file)
    with pytest.raises(Timeout), storage.locked(file, said.append, lambda: True):
        pass
    assert len(said) == 1
    holder.kill()
    holder.communicate()
    assert not storage.is_locked(file)
    with storage.locked(file, pytest.fail):
        assert storage.is_locked(file)
    assert not storage.is_locked(file)
