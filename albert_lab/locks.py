"""Locks between processes, also of several hosts on a shared file system: leases that their holder refreshes."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import LeaseCompromise, SoftFileLease, Timeout

from albert_lab.errors import STOPPED
from albert_lab.messages import to_stderr

REFRESH_SECONDS = 20.0
# Another host takes over from a holder that has not refreshed its lease for this time, by its own clock; on one host, a
# process that has ended is known at once. It is many times the interval above, since a file system may stall.
LEASE_SECONDS = 240.0
SUFFIX = ".lease"  # of the lock of a file or folder of the same name
_POLL_SECONDS = 0.5


@contextmanager
def locked(file: Path, on_wait: Callable[[], None], is_stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Holds the lock of a file within this context.

    If another process takes over meanwhile, this one ends: it must not write what the other one writes.

    Args:
        file: exists while the lock is held.
        on_wait: called once if another process holds the lock.
        is_stopped: called while waiting; True stops waiting.

    Raises:
        filelock.Timeout: stopped while waiting.
    """

    def is_over() -> bool:
        _remove_empty(file)
        return is_stopped is not None and is_stopped()

    held = lease(file, _end)
    try:
        held.acquire(timeout=0)
    except Timeout:
        on_wait()
        held.acquire(poll_interval=_POLL_SECONDS, cancel_check=is_over)
    try:
        yield
    finally:
        held.release()


def lease(file: Path, on_lost: Callable[[LeaseCompromise], None] | None = None) -> SoftFileLease:
    """The lease of a file, not yet acquired; on_lost is called if another process takes over while it is held."""
    return SoftFileLease(
        file,
        lease_duration=LEASE_SECONDS,
        heartbeat_interval=REFRESH_SECONDS,
        on_compromise=on_lost,
        thread_local=False,
    )


def is_locked(file: Path) -> bool:
    """Whether a process holds the lock or lease of a file; on another host, judged by the time of its last refresh."""
    try:
        refreshed = file.stat().st_mtime
    except FileNotFoundError:
        return False
    lock = lease(file)
    try:
        lock.acquire(timeout=0)  # takes over from a process of this host that has ended
    except Timeout:
        return time.time() - refreshed < LEASE_SECONDS
    lock.release()
    return False


def _remove_empty(file: Path) -> None:
    """Remove the file of a process that was killed as it made it; filelock would wait for it forever."""
    with suppress(FileNotFoundError):
        status = file.stat()
        if not status.st_size and time.time() - status.st_mtime > REFRESH_SECONDS:
            file.unlink()


def _end(lost: LeaseCompromise) -> None:
    to_stderr(f"{lost.lock_file}: no longer held by this process ({lost.reason}), which ends; the same command resumes")
    os._exit(STOPPED)
