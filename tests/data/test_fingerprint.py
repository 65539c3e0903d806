import os

import pytest
from test_corpus import corpus

from albert_lab.data.files import fingerprint, known_digests


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("One.")
    (folder / "b.txt").write_text("Two.")
    return folder


def look_again(settings):
    known_digests.clear()
    return fingerprint(settings)


def test_the_fingerprint_depends_only_on_names_and_contents(files):
    first = fingerprint(corpus(files))
    assert len(first) == 12
    moved = files.rename(files.parent / "moved")
    os.utime(moved / "a.txt", ns=(1, 1))
    assert fingerprint(corpus(moved)) == first
    assert fingerprint(corpus(moved / "*.txt")) == first
    other = moved / "c.txt"
    (moved / "b.txt").rename(other)
    os.utime(other, ns=(1, 1))
    renamed = look_again(corpus(moved))
    other.write_text("Tow.")
    os.utime(other, ns=(1, 1))  # neither size nor time tells of the change
    assert len({first, renamed, look_again(corpus(moved))}) == 3


def test_a_process_looks_at_the_files_once(files):
    first = fingerprint(corpus(files))
    (files / "c.txt").write_text("two\n")
    assert fingerprint(corpus(files)) == first != look_again(corpus(files))
