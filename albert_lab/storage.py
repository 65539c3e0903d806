"""Files and folders that are completely on the disk or not at all, and locks between processes."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from albert_lab.messages import Say

PARTIAL = ".partial-"  # in the names of incomplete files and folders
LOCK = ".lock"  # of the lock of a file or folder of the same name


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file atomically, text as UTF-8; after an error, an earlier file is unchanged, and no
    other remains.
    """
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path at which to write a file or folder, which takes the place of `path` at the end of this
    context.

    A folder takes that of an empty one only. If the process is killed, a partial file or folder may
    remain beside it.

    Raises:
        OSError: the disk is full or fails; `path` is unchanged, and nothing else remains.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}{PARTIAL}{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield partial
        for file in (*partial.rglob("*"), partial):
            _sync(file)
        partial.replace(path)
        _sync(path.parent)
    except OSError as error:
        # the system does not name the file that found the disk full
        error.filename = error.filename or str(path)
        raise
    finally:
        remove(partial)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def link(file: Path, name: Path) -> None:
    """Give a file that is replaced, but never changed, a second name: its bytes are on the disk
    once. Where the file system has no such links, it is copied.
    """
    try:
        os.link(file, name)
    except OSError:
        shutil.copyfile(file, name)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def locked(
    file: Path, say: Say, is_stopped: Callable[[], bool] | None = None
) -> AbstractContextManager[object]:
    """Holds the lock of a file, which stays, within this context; the system releases it when the
    process ends.

    Raises:
        filelock.Timeout: stopped while waiting for another process.
    """
    lock = FileLock(file)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        say(f"another process holds {file}: waiting for it")
        return lock.acquire(cancel_check=is_stopped)


def is_locked(file: Path) -> bool:
    """Whether a process holds the lock of a file."""
    try:
        with file.open("r+b") as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)  # which many can ask at once
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def find_or_build(folder: Path, build: Callable[[Path], None], say: Say) -> Path:
    """The folder; builds it first if it does not exist.

    The folder appears by one rename when all of it is on disk. A build that is killed leaves only a
    partial folder, which the next build removes. A second process waits for the first.

    Args:
        folder: Its path; the name must identify the content.
        build: Fills the (empty) folder given to it.

    Raises:
        OSError: no space left; no part of the folder is kept.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(folder.name + LOCK), say):
        if folder.is_dir():
            return folder
        # of a killed holder of the lock
        for partial in folder.parent.glob(f".{folder.name}{PARTIAL}*"):
            remove(partial)
        with replacing(folder) as partial:
            partial.mkdir()
            build(partial)
    return folder
