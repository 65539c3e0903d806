import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import Timeout

from albert_lab import storage
from albert_lab.errors import WriteError


def test_an_atomic_write_leaves_no_other_file(tmp_path):
    storage.write_atomically(tmp_path / "a.txt", "one")
    storage.write_atomically(tmp_path / "a.txt", "two")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "two")]


def test_if_the_disk_is_full_the_file_is_named_and_unchanged(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    storage.write_atomically(tmp_path / "a.txt", "one")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=r"a\.txt could not be written: the disk is full"):
        storage.write_atomically(tmp_path / "a.txt", "two")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "one")]


def test_the_lock_of_a_killed_process_is_free_at_once_and_waiting_for_a_living_one_can_be_stopped(tmp_path):
    file, said = tmp_path / "lock", []
    script = (
        f"import pathlib; from albert_lab import storage; held = storage.locked(pathlib.Path({str(file)!r}), print)"
    )
    script += "; held.__enter__(); print(flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout
    holder.stdout.readline()
    assert storage.is_locked(file)
    with pytest.raises(Timeout), storage.locked(file, lambda: said.append("waits"), lambda: True):
        pass
    assert said == ["waits"]
    holder.kill()
    holder.communicate()
    assert not storage.is_locked(file)
    with storage.locked(file, pytest.fail):
        assert storage.is_locked(file)
    assert not storage.is_locked(file)


def test_a_folder_is_whole_under_its_name_after_an_interruption_between_the_renames(tmp_path, monkeypatch):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "a.txt").write_text("one")

    def interrupt(*_):
        raise KeyboardInterrupt

    def replace_by_two():
        with storage.replacing(folder) as partial:
            partial.mkdir()
            (partial / "a.txt").write_text("two")

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_by_two()
    assert [path.name for path in tmp_path.iterdir()] == ["report"]
    assert (folder / "a.txt").read_text() == "one"
