import errno
import os
from pathlib import Path

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
