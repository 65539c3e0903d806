import os

import pytest
from test_corpus import corpus

from albert_lab.data.fingerprint import fingerprint, fingerprints_taken_once


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
