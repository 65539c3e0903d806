"""Marks of folders that a running process reads, so that no other process removes them.

A mark is a lease next to the folder; any number of processes can mark the same folder.
"""

import atexit
from glob import escape
from pathlib import Path

from filelock import SoftFileLease

from albert_lab import locks, storage

_SUFFIX = ".in-use-"
_held: dict[Path, SoftFileLease] = {}


def mark(folder: Path) -> None:
    """Mark a folder as in use until this process ends."""
    if folder in _held:
        return
    if not _held:
        atexit.register(_release)
    lease = locks.lease(folder.with_name(f"{folder.name}{_SUFFIX}{storage.unique()}"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lease.acquire(timeout=0)
    except OSError:  # a read-only cache is not cleaned either
        return
    _held[folder] = lease


def unmark(folder: Path) -> None:
    """Remove this process's mark of a folder, if any."""
    if lease := _held.pop(folder, None):
        lease.release()


def is_used(folder: Path) -> bool:
    """Whether another process has marked a folder; removes marks of ended processes."""
    own = Path(_held[folder].lock_file) if folder in _held else None
    marks = folder.parent.glob(f"{escape(folder.name)}{_SUFFIX}*")
    return any(locks.is_locked(file) for file in marks if file != own)


def is_mark(path: Path) -> bool:
    return _SUFFIX in path.name


def _release() -> None:
    for folder in list(_held):
        unmark(folder)
