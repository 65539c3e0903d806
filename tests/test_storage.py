import errno
import os

import pytest

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
