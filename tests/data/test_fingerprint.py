import os

import pytest
from test_corpus import corpus, hub

from albert_lab.data import fingerprint as fingerprints
from albert_lab.data.fingerprint import fingerprint, fingerprints_taken_once, remember_fingerprints


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("One.")
    (folder / "b.txt").write_text("Two.")
    return folder


def test_the_fingerprint_depends_only_on_names_and_contents(files):
    first = fingerprint(corpus(files))
    assert len(first) == 12
    moved = files.rename(files.parent / "moved")
    os.utime(moved / "a.txt", ns=(1, 1))
    assert fingerprint(corpus(moved)) == first
    assert fingerprint(corpus(moved / "*.txt")) == first
    (moved / "b.txt").rename(moved / "c.txt")
    renamed = fingerprint(corpus(moved))
    (moved / "c.txt").write_text("Tow.")
    assert len({first, renamed, fingerprint(corpus(moved))}) == 3


def test_a_remembered_file_is_not_read_again_until_it_changes(files, tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fingerprints, "digests", {})
    first = fingerprint(corpus(files))
    assert not (tmp_path / "cache").exists()
    remember_fingerprints()

    opened = []
    monkeypatch.setattr(fingerprints, "digests", {})
    read_file = fingerprints.open_file
    monkeypatch.setattr(fingerprints, "open_file", lambda file: opened.append(file.name) or read_file(file))
    assert fingerprint(corpus(files)) == first
    assert not opened
    (files / "b.txt").write_text("Six.")
    assert fingerprint(corpus(files)) != first
    assert opened == ["b.txt"]


def test_the_revision_is_requested_once_and_the_hub_may_then_be_unreachable(tmp_path, monkeypatch):
    asked = []

    class Api:
        def dataset_info(self, path):
            asked.append(path)
            return type("Info", (), {"sha": "abc"})

    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.setattr(fingerprints, "digests", {})
    first = fingerprint(hub("someone/texts"))
    remember_fingerprints()
    monkeypatch.undo()
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(fingerprints, "digests", {})
    assert fingerprint(hub("someone/texts")) == first
    assert asked == ["someone/texts"]


def test_a_local_data_set_has_the_fingerprint_of_its_files_and_split(files):
    first = fingerprint(hub(files))
    assert fingerprint(hub(files, split="test")) != first
    (files / "a.txt").write_text("Three.")
    assert fingerprint(hub(files)) != first


def test_a_text_that_was_edited_is_noticed_though_its_size_and_time_are_kept(files):
    file = files / "a.txt"
    state, first = file.stat(), fingerprint(corpus(file))
    file.write_text("Two.")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert fingerprint(corpus(file)) != first


def test_fingerprints_taken_once_see_changes_only_afterwards(files):
    with fingerprints_taken_once():
        first = fingerprint(corpus(files))
        (files / "c.txt").write_text("two\n")
        assert fingerprint(corpus(files)) == first
    assert fingerprint(corpus(files)) != first
