import os
from types import SimpleNamespace

import huggingface_hub
import pytest
from test_corpus import corpus, hub

from albert_lab import paths
from albert_lab.data.fingerprint import fingerprint, fingerprints_taken_once
from albert_lab.errors import MissingDataError


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


def test_the_revision_is_requested_once_and_the_hub_may_then_be_unreachable(tmp_path, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MissingDataError, match="someone/texts"):
        fingerprint(hub("someone/texts"))
    for content in ("", "[1]", "{}"):  # a damaged file is written again
        (tmp_path / "cache").mkdir(exist_ok=True)
        (tmp_path / "cache" / "fingerprints.json").write_text(content)
        with monkeypatch.context() as patch:
            patch.setattr(huggingface_hub, "HfApi", lambda: SimpleNamespace(dataset_info=lambda path: reply(path)))
            first = fingerprint(hub("someone/texts"))
        assert fingerprint(hub("someone/texts")) == first
        assert fingerprint(hub("someone/texts", split="test")) != first
    assert "a1b2" in (paths.cache() / "fingerprints.json").read_text()


def reply(path):
    return SimpleNamespace(sha="a1b2")


def test_fingerprints_taken_once_see_changes_only_afterwards(files):
    with fingerprints_taken_once():
        first = fingerprint(corpus(files))
        (files / "c.txt").write_text("two\n")
        assert fingerprint(corpus(files)) == first
    assert fingerprint(corpus(files)) != first
