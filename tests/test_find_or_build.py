import errno
import threading

import pytest
from toy import silent

from albert_lab import storage
from albert_lab.storage import find_or_build


def write(folder):
    (folder / "content").write_text("whole")


def left(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(storage.LOCK))


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("bad text"), ValueError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.ENOSPC, "no space"), OSError),
    ],
)
def test_a_build_that_fails_leaves_nothing_and_is_repeated_until_the_folder_exists(
    tmp_path, error, raised
):
    def fail(folder):
        write(folder)
        raise error

    with pytest.raises(raised):
        find_or_build(tmp_path / "abc", fail, silent)
    assert left(tmp_path) == []
    for build in (write, fail):  # the second is not called
        find_or_build(tmp_path / "abc", build, silent)
    assert left(tmp_path) == ["abc"]


def test_what_a_killed_process_left_of_this_folder_is_removed(tmp_path):
    other = tmp_path / f".abcd{storage.PARTIAL}7-ab"
    for partial in (tmp_path / f".abc{storage.PARTIAL}7-ab", other):
        partial.mkdir()
        write(partial)
    find_or_build(tmp_path / "abc", write, silent)
    assert left(tmp_path) == [other.name, "abc"]


def test_a_second_process_waits_and_finds_the_folder_built(tmp_path):
    begun, go_on, said = threading.Event(), threading.Event(), []

    def build(folder):
        begun.set()
        go_on.wait(10)
        write(folder)

    def hear(line):
        said.append(line)
        go_on.set()

    first = threading.Thread(target=find_or_build, args=(tmp_path / "abc", build, silent))
    first.start()
    begun.wait(10)
    find_or_build(tmp_path / "abc", lambda folder: pytest.fail(str(folder)), hear)
    first.join()
    assert len(said) == 1
