"""Folders that a process reads, marked while it lives, so that none is removed under it.

A mark is a lock file beside the folder. The system lets it go when the process ends, however it ends.
"""

import atexit
import os
import socket
from glob import escape
from pathlib import Path

from filelock import FileLock, Timeout

_SUFFIX = ".in-use-"
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
    except (OSError, Timeout):  # a cache that cannot be written to is not cleaned either
        _held.pop(key, None)


def _file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{_SUFFIX}{socket.gethostname()}-{os.getpid()}")


def is_used(folder: Path) -> bool:
    """Whether another process has marked a folder; marks of processes that have ended are removed."""
    found = folder.parent.glob(f"{escape(folder.name)}{_SUFFIX}*")
    return any(_is_held(file) for file in found if file != _file(folder))


def is_mark(path: Path) -> bool:
    """Whether a file is a mark."""
    return _SUFFIX in path.name


def _is_held(file: Path) -> bool:
    try:
        with FileLock(file, timeout=0):
            file.unlink(missing_ok=True)
            return False
    except Timeout:
        return True


def _release() -> None:
    for (process, folder), lock in list(_held.items()):
        if process == os.getpid():
            lock.release(force=True)
            Path(lock.lock_file).unlink(missing_ok=True)
            del _held[process, folder]
