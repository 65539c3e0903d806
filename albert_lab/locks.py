"""Locks of processes, which the system releases when their process ends: of one at a time, or of all that read."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

SUFFIX = ".lock"  # of the lock of a file or folder of the same name
_IN_USE = ".in-use"
_POLL_SECONDS = 0.5
_used: dict[Path, int] = {}  # descriptors of the marks of this process


@contextmanager
def locked(file: Path, on_wait: Callable[[], None], is_stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Holds the lock of a file within this context.

    Args:
        file: stays when the lock is released.
        on_wait: called once if another process holds the lock.
        is_stopped: called while waiting; True stops waiting.

    Raises:
        filelock.Timeout: stopped while waiting.
    """
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire(poll_interval=_POLL_SECONDS, cancel_check=is_stopped)
    try:
        yield
    finally:
        lock.release()


def is_locked(file: Path) -> bool:
    """Whether a process holds the lock of a file."""
    try:
        descriptor = os.open(file, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _takes(descriptor)
    finally:
        os.close(descriptor)


def mark_used(folder: Path) -> None:
    """Mark a folder as read by this process until it ends, so that no other one removes it."""
    if folder in _used:
        return
    with suppress(OSError):  # a read-only cache is not cleaned either
        folder.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder.with_name(folder.name + _IN_USE), os.O_RDONLY | os.O_CREAT, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        _used[folder] = descriptor


def is_used(folder: Path) -> bool:
    """Whether another process has marked a folder."""
    if folder not in _used:
        return is_locked(folder.with_name(folder.name + _IN_USE))
    is_free = _takes(_used[folder])
    fcntl.flock(_used[folder], fcntl.LOCK_SH)
    return not is_free


def is_lock(path: Path) -> bool:
    return path.name.endswith((SUFFIX, _IN_USE))


def _takes(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
