import os
import shutil
import subprocess
import sys
import threading
import time

import pytest
from filelock import Timeout

from albert_lab import in_use, locks, paths
from albert_lab.errors import STOPPED
from albert_lab.runs import cleaning

OTHER_HOST = f"filelock/2\npid=1\nhost=elsewhere\nmode=lease\ntoken=ab\nduration={locks.LEASE_SECONDS}\n"


def test_a_lock_is_held_within_its_context_only(tmp_path):
    file = tmp_path / "lease"
    with locks.locked(file, pytest.fail):
        assert locks.is_locked(file)
    assert not locks.is_locked(file)
    assert not list(tmp_path.iterdir())


def test_the_lock_of_a_killed_process_of_this_host_is_free_at_once(tmp_path):
    file = tmp_path / "lease"
    holds = f"import os, pathlib; from albert_lab import locks; held = locks.lease(pathlib.Path({str(file)!r}))"
    subprocess.run([sys.executable, "-c", f"{holds}; held.acquire(); os.kill(os.getpid(), 9)"])
    assert file.exists()
    with locks.locked(file, pytest.fail):
        assert locks.is_locked(file)


def test_a_lock_of_another_host_is_held_while_it_is_refreshed(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LEASE_SECONDS", 0.6)
    monkeypatch.setattr(locks, "REFRESH_SECONDS", 0.2)
    monkeypatch.setattr(locks, "_POLL_SECONDS", 0.02)
    file, said, until = tmp_path / "lease", [], time.monotonic() + 1
    file.write_text(OTHER_HOST.replace("240.0", "0.6"))

    def live():
        while time.monotonic() < until:
            os.utime(file)
            time.sleep(0.05)

    other = threading.Thread(target=live)
    other.start()
    assert locks.is_locked(file)
    with locks.locked(file, lambda: said.append("waiting")):
        assert time.monotonic() > until
    other.join()
    assert said == ["waiting"]


def test_the_lock_of_a_process_that_was_killed_as_it_made_the_file_is_free_after_a_while(tmp_path):
    file = tmp_path / "lease"
    file.touch()
    os.utime(file, (0, 0))
    assert not locks.is_locked(file)
    with locks.locked(file, lambda: None):
        assert file.stat().st_size


def test_waiting_for_another_host_can_be_stopped(tmp_path):
    (tmp_path / "lease").write_text(OTHER_HOST)
    with pytest.raises(Timeout), locks.locked(tmp_path / "lease", lambda: None, lambda: True):
        pass


def test_a_process_whose_lock_was_taken_over_ends(tmp_path):
    file = tmp_path / "lease"
    script = (
        "import pathlib, time\nfrom albert_lab import locks\nlocks.REFRESH_SECONDS = 0.1\n"
        f"with locks.locked(pathlib.Path({str(file)!r}), print):\n    print(flush=True)\n    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    holder.stdout.readline()
    file.unlink()
    file.write_text(OTHER_HOST)
    _, said = holder.communicate(timeout=30)
    assert holder.returncode == STOPPED
    assert f"{file}: no longer held by this process" in said
    assert file.read_text() == OTHER_HOST


def test_a_mark_of_another_host_is_valid_while_it_is_refreshed(tmp_path):
    folder = tmp_path / "shards"
    mark = tmp_path / "shards.in-use-4711"
    mark.write_text(OTHER_HOST)
    assert in_use.is_used(folder)
    os.utime(mark, (0, 0))
    assert not in_use.is_used(folder)


def test_a_folder_is_in_use_by_others_until_they_end(tmp_path):
    folder = tmp_path / "shards"
    marks = f"import pathlib; from albert_lab import in_use; in_use.mark(pathlib.Path({str(folder)!r})); print()"
    other = subprocess.Popen([sys.executable, "-c", f"{marks}; input()"], stdin=-1, stdout=-1)
    assert other.stdout
    other.stdout.readline()
    in_use.mark(folder)
    assert in_use.is_used(folder)
    other.communicate(b"\n")
    assert not in_use.is_used(folder)
    in_use.unmark(folder)
    assert not list(tmp_path.iterdir())


def test_cleaning_keeps_folders_that_another_process_uses(own_home, monkeypatch):
    monkeypatch.setenv("ALBERT_LAB_CACHE", str(own_home / "cache"))
    used, free = (paths.cache() / "shards" / name for name in ("used", "free"))
    used.mkdir(parents=True)
    free.mkdir()
    used.with_name("used.in-use-7").write_text(OTHER_HOST)
    assert cleaning.find_garbage(cache=True, checkpoints=True).keys() == {free}
    assert cleaning.find_used(cache=True, checkpoints=True) == [used]


def test_a_checkpoint_whose_removal_was_killed_is_removed_by_the_next_cleaning(own_home, monkeypatch):
    left = paths.runs() / "run" / "checkpoint"
    left.mkdir(parents=True)
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda *_, **__: None)
        cleaning.free([left])
    (result,) = cleaning.find_garbage(cache=False, checkpoints=False)
    assert result.name.startswith(".checkpoint.partial-")
    cleaning.free([result])
    assert not list((paths.runs() / "run").iterdir())
