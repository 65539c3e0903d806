import errno
import threading
import time

import pytest
from toy import silent

from albert_lab import locks, storage
from albert_lab.data.build import find_or_build, worker_pool
from albert_lab.errors import WriteError


def write(folder):
    (folder / "content").write_text("whole")


def left(folder):
    return sorted(path.name for path in folder.iterdir() if not locks.is_lock(path))


def test_a_folder_is_built_once(tmp_path):
    built = []
    folder = tmp_path / "in" / "abc"
    for _ in range(2):
        assert find_or_build(folder, lambda partial: built.append(1) or write(partial), "it", silent) == folder
    assert (folder / "content").read_text() == "whole"
    assert built == [1]
    assert left(tmp_path / "in") == ["abc"]


@pytest.mark.parametrize("error", [ValueError("bad text"), KeyboardInterrupt(), OSError(errno.EACCES, "not yours")])
def test_a_build_that_fails_leaves_nothing_and_can_be_repeated(tmp_path, error):
    def fail(folder):
        write(folder)
        raise error

    with pytest.raises(type(error)):
        find_or_build(tmp_path / "abc", fail, "it", silent)
    assert left(tmp_path) == []
    find_or_build(tmp_path / "abc", write, "it", silent)
    assert left(tmp_path) == ["abc"]


def test_a_full_disk_is_reported_with_the_data_that_was_being_written(tmp_path):
    def fill(folder):
        write(folder)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(WriteError, match=f"the disk is full: writing the shards to {tmp_path} failed"):
        find_or_build(tmp_path / "abc", fill, "the shards", silent)
    assert left(tmp_path) == []


def test_what_a_killed_process_left_of_this_folder_is_removed(tmp_path):
    other = storage.beside(tmp_path / "abcd")
    for partial in (storage.beside(tmp_path / "abc"), other):
        partial.mkdir()
        write(partial)
    find_or_build(tmp_path / "abc", write, "it", silent)
    assert left(tmp_path) == [other.name, "abc"]


def test_a_second_process_waits_and_finds_the_folder_built(tmp_path):
    begun, go_on, built, said = threading.Event(), threading.Event(), [], []

    def build(folder):
        built.append(folder)
        begun.set()
        go_on.wait(10)
        write(folder)

    def hear(line):
        said.append(line)
        go_on.set()

    first = threading.Thread(target=find_or_build, args=(tmp_path / "abc", build, "the shards", silent))
    first.start()
    begun.wait(10)
    find_or_build(tmp_path / "abc", build, "the shards", hear)
    first.join()
    assert len(built) == 1
    assert said == ["another process is preparing the shards: waiting for it"]


def test_a_worker_starts_without_torch_and_dies_when_the_body_fails():
    started = time.monotonic()
    with pytest.raises(ZeroDivisionError), worker_pool(1) as pool:  # noqa: PT012
        assert pool.submit(eval, "'torch' in __import__('sys').modules").result() is False
        pool.submit(time.sleep, 60)
        raise ZeroDivisionError
    assert time.monotonic() - started < 30
