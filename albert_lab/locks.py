"""Locks between processes, also of several hosts on a shared file system.

The system's own lock on a file lets go when its process ends, but on a shared file system it may hold on one host
alone, or not at all. So the holder also writes its name into a file next to it, which one process at a time can make,
and touches that while it lives. A name of this host is void once the system's lock is free; one of another host once
its job is over, or once it has not been touched for a while that is watched from here, whatever the clocks say.
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
# A holder of another host that has not touched its name for so long has ended: many times the above, since a file
# system may stall.
ABANDONED_SECONDS = 240.0
_POLL_SECONDS = 0.5

_held: set[Path] = set()
_toucher: threading.Thread | None = None


@contextmanager
def locked(file: Path, on_wait: Callable[[], None], is_stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Within, no other process holds the lock of a file.

    Args:
        file: the file; next to it is another one, with .owner added to its name.
        on_wait: called once where another process holds it.
        is_stopped: asked while it waits.

    Raises:
        filelock.Timeout: stopped while it waited.
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
    """Whether a process holds the lock; one of another host by when it last touched its name."""
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
    """Where the holder of a lock writes its name."""
    return file.with_name(f"{file.name}.owner")


def keep(file: Path) -> None:
    """Touch a file now and then until drop() or the end of this process."""
    global _toucher
    _held.add(file)
    if _toucher is None or not _toucher.is_alive():
        _toucher = threading.Thread(target=_touch, daemon=True)
        _toucher.start()


def drop(file: Path) -> None:
    """Remove a file that was kept."""
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
    except (OSError, NotImplementedError):  # a file system without such locks: the name alone counts
        return True
    return True


def _sign(file: Path, system: FileLock) -> bool:
    """Write this process's name; False where that of another one is there."""
    for _ in range(3):
        try:
            descriptor = os.open(owner_file(file), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            seen = _look(file)
            # Whoever wrote it on this host had the system's lock, where there is such a lock.
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
    """The name in a lock, and when it was last touched (nanoseconds); nothing where it is free."""
    return _stamp(owner_file(file))


def _stamp(owner: Path) -> tuple[str, int]:
    try:
        return owner.read_text(), owner.stat().st_mtime_ns
    except OSError:
        return "", 0


def _void(file: Path, seen: tuple[str, int]) -> None:
    """Take the name away that was seen; if another process was quicker and this is its own, put that back."""
    owner = owner_file(file)
    aside = owner.with_name(f"{owner.name}.{owners.own()}")
    with contextlib.suppress(FileNotFoundError):
        owner.rename(aside)
        if _stamp(aside) != seen:
            with contextlib.suppress(FileExistsError):
                os.link(aside, owner)
        aside.unlink()
