"""Locks between processes, also of several hosts on a shared file system.

The system releases its lock on a file when the process ends, but on a shared file system the lock may work only within
one host, or not at all. So the holder also writes its name into a file next to it, which only one process can create,
and touches this file regularly. A name of this host is invalid once the system's lock is free; a name of another host
once its job has ended, or once it has not been touched for some time by the clock of the waiting process.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from albert_lab import owners

TOUCH_SECONDS = 20.0
# A holder on another host that has not touched its name for this time has ended. It is many times the interval above,
# since a file system may stall.
ABANDONED_SECONDS = 240.0
_POLL_SECONDS = 0.5

_held: set[Path] = set()
_toucher: threading.Thread | None = None


@contextmanager
def locked(file: Path, on_wait: Callable[[], None], is_stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Holds the lock of a file within this context.

    Args:
        file: the file to lock; the owner is written next to it, to the same name with .owner.
        on_wait: called once if another process holds the lock.
        is_stopped: called while waiting; True stops waiting.

    Raises:
        filelock.Timeout: stopped while waiting.
    """
    system = FileLock(file)
    seen, since = _look(file), time.monotonic()
    is_waiting = False
    while not (_acquire(system) and _sign(file, system)):
        system.release()
        if (now := _look(file)) != seen:
            seen, since = now, time.monotonic()
        elif not owners.is_here(seen[0]) and (
            owners.has_ended(seen[0]) or time.monotonic() - since > ABANDONED_SECONDS
        ):
            _void(file, seen)
            continue
        if not is_waiting:
            is_waiting = True
            on_wait()
        if is_stopped and is_stopped():
            raise Timeout(str(file))
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        drop(owner_file(file))
        system.release()


def is_locked(file: Path) -> bool:
    """Whether a process holds the lock; on another host, judged by the time when it last touched its name."""
    if not file.exists():
        return False
    system = FileLock(file)
    if not _acquire(system):
        return True
    try:
        name, touched = _look(file)
        if not name or (owners.is_here(name) and system.is_locked):
            return False
        ended = owners.has_ended(name)
        return time.time() - touched / 1e9 < ABANDONED_SECONDS if ended is None else not ended
    finally:
        system.release()


def owner_file(file: Path) -> Path:
    """The file to which the holder of a lock writes its name."""
    return file.with_name(f"{file.name}.owner")


def keep(file: Path) -> None:
    """Touch a file regularly until drop() or the end of this process."""
    global _toucher
    _held.add(file)
    if _toucher is None or not _toucher.is_alive():
        _toucher = threading.Thread(target=_touch, daemon=True)
        _toucher.start()


def drop(file: Path) -> None:
    """Remove a file of keep()."""
    _held.discard(file)
    file.unlink(missing_ok=True)


def _touch() -> None:
    while True:
        time.sleep(TOUCH_SECONDS)
        for file in list(_held):
            with contextlib.suppress(OSError):
                os.utime(file)


def _acquire(system: FileLock) -> bool:
    try:
        system.acquire(timeout=0)
    except Timeout:
        return False
    except (OSError, NotImplementedError):  # a file system without locks: only the name counts
        return True
    return True


def _sign(file: Path, system: FileLock) -> bool:
    """Write this process's name; False if the name of another process exists."""
    for _ in range(3):
        try:
            descriptor = os.open(owner_file(file), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            seen = _look(file)
            # A writer on this host had the system's lock, if the file system has such locks.
            if not owners.is_here(seen[0]) or not (system.is_locked or owners.has_ended(seen[0])):
                return False
            _void(file, seen)
        else:
            with os.fdopen(descriptor, "w") as stream:
                stream.write(owners.own())
            keep(owner_file(file))
            return True
    return False


def _look(file: Path) -> tuple[str, int]:
    """The name in a lock and the time of its last touch (nanoseconds); empty and 0 if free."""
    return _stamp(owner_file(file))


def _stamp(owner: Path) -> tuple[str, int]:
    try:
        return owner.read_text(), owner.stat().st_mtime_ns
    except OSError:
        return "", 0


def _void(file: Path, seen: tuple[str, int]) -> None:
    """Remove the seen name; if another process has already replaced it by its name, restore that."""
    owner = owner_file(file)
    aside = owner.with_name(f"{owner.name}.{owners.own()}")
    with contextlib.suppress(FileNotFoundError):
        owner.rename(aside)
        if _stamp(aside) != seen:
            with contextlib.suppress(FileExistsError):
                os.link(aside, owner)
        aside.unlink()
