"""Marks of folders that a running process reads, so that no other process removes them.

A mark is a file next to the folder, named after its process, locked and touched regularly. The system releases the lock
when the process ends in any way; owners.py describes what another host can observe.
"""

import atexit
import os
import time
from glob import escape
from pathlib import Path

from filelock import FileLock, Timeout

from albert_lab import locks, owners

_SUFFIX = ".in-use-"
# A mark of another host that was not touched for this time is invalid, even if the clocks differ.
_ABANDONED_SECONDS = 3600.0
_held: dict[tuple[int, Path], FileLock] = {}


def mark(folder: Path) -> None:
    """Mark a folder as in use until this process ends."""
    key = (os.getpid(), folder)
    if key in _held:
        return
    if not _held:
        atexit.register(_release)
    file = _file(folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _held[key] = FileLock(file)
        _held[key].acquire(timeout=0)
        locks.keep(file)
    except (OSError, Timeout):  # a read-only cache is not cleaned either
        _held.pop(key, None)


def unmark(folder: Path) -> None:
    """Remove this process's mark of a folder, if any."""
    lock = _held.pop((os.getpid(), folder), None)
    if lock:
        lock.release(force=True)
        locks.drop(Path(lock.lock_file))
        Path(lock.lock_file).unlink(missing_ok=True)


def _file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{_SUFFIX}{owners.own()}")


def is_used(folder: Path) -> bool:
    """Whether another process has marked a folder; removes marks of ended processes."""
    found = folder.parent.glob(f"{escape(folder.name)}{_SUFFIX}*")
    return any(_is_held(file) for file in found if file != _file(folder))


def is_mark(path: Path) -> bool:
    """Whether a file is a mark."""
    return _SUFFIX in path.name


def _is_held(file: Path) -> bool:
    if owners.is_here(file.name):
        try:
            with FileLock(file, timeout=0):
                file.unlink(missing_ok=True)
                return False
        except Timeout:
            return True
    try:
        is_void = owners.is_abandoned(file, _ABANDONED_SECONDS, time.time())
    except FileNotFoundError:
        return False
    if is_void:
        file.unlink(missing_ok=True)
    return not is_void


def _release() -> None:
    for (process, folder), lock in list(_held.items()):
        if process == os.getpid():
            lock.release(force=True)
            locks.drop(Path(lock.lock_file))
            del _held[process, folder]
