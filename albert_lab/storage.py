"""Files and folders that are completely on the disk or not at all, and locks between processes."""

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from albert_lab.errors import WriteError

PARTIAL = ".partial-"  # in the names of incomplete files and folders
LOCK = ".lock"  # of the lock of a file or folder of the same name
_POLL_SECONDS = 0.5


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file atomically, text as UTF-8.

    Raises:
        WriteError: the disk is full or fails; an earlier file is unchanged, and no other file remains.
    """
    with writing(path), replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path at which to write a file or folder, which takes the place of `path` at the end of this context.

    A folder takes that of an empty one only. After an error, `path` is unchanged and nothing else remains. If the
    process is killed, a partial file or folder may remain beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = beside(path)
    try:
        yield partial
        for file in (*partial.rglob("*"), partial):
            sync(file)
        partial.replace(path)
        sync(path.parent)
    finally:
        remove(partial)


def beside(path: Path) -> Path:
    """A name for an incomplete file or folder next to a path, which no other process uses, on any host."""
    return path.with_name(f".{path.name}{PARTIAL}{os.getpid()}-{secrets.token_hex(4)}")


def completed(partial: Path) -> Path | None:
    """The path that a partial file or folder would have had when complete; None for a path that is not partial."""
    name, is_partial, _ = partial.name.partition(PARTIAL)
    return partial.with_name(name.removeprefix(".")) if is_partial else None


def lock_of(path: Path) -> Path:
    """The lock under which a folder is made, also for the partial folder that it is before."""
    whole = completed(path) or path
    return whole.with_name(whole.name + LOCK)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def discard(path: Path) -> None:
    """Remove a file or folder that other processes may look for; if this one is killed, none is left half removed."""
    aside = beside(path)
    with suppress(FileNotFoundError):  # another process did
        path.rename(aside)
    remove(aside)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert the system's errors within this context into an error that names the file.

    Raises:
        WriteError: the disk is full or fails.
    """
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if is_full(error) else error.strerror or error
        raise WriteError(f"{path} could not be written: {reason}") from error


def is_full(error: Exception) -> bool:
    """Whether an error of the system says that the disk, or the user's part of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(file: Path, on_wait: Callable[[], None], is_stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Holds the lock of a file within this context; the system releases it when the process ends.

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
    with suppress(OSError), file.open("r+b") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
