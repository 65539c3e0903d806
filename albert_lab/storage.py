"""Atomic writes: a file or folder is completely on the disk or not at all."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from albert_lab.errors import ConfigError, WriteError

# Reasons that depend on the place of a folder; others, such as a full disk, are no mistake of the user.
_REFUSALS = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR)
# In the names of incomplete files and folders.
PARTIAL = ".partial-"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file atomically, text as UTF-8.

    Raises:
        WriteError: the disk is full or fails; an earlier file is unchanged, and no other file remains.
    """
    with writing(path), replacing(path) as partial, partial.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path at which to write a file or folder, which takes the place of `path` at the end of this context.

    After an error, `path` is unchanged and nothing else remains. If the process is killed, a partial file or folder may
    remain beside it; of two folders, one is complete, maybe under the name of a partial one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial, before = beside(path), beside(path)
    try:
        yield partial
        for file in [*partial.rglob("*"), partial] if partial.is_dir() else [partial]:
            sync(file)
        if partial.is_dir() and path.is_dir():
            path.rename(before)
        partial.replace(path)
        sync(path.parent)
    finally:
        if before.exists() and not path.exists():  # interrupted between the two renames
            before.rename(path)
        remove(partial)
    remove(before)


def beside(path: Path) -> Path:
    """A name for an incomplete file or folder next to a path, which no other process uses."""
    return path.with_name(f".{path.name}{PARTIAL}{unique()}")


def completed(partial: Path) -> Path | None:
    """The path that a partial file or folder would have had when complete; None for a path that is not partial."""
    name, is_partial, _ = partial.name.partition(PARTIAL)
    return partial.with_name(name.removeprefix(".")) if is_partial else None


def unique() -> str:
    """A part of a name that no other process uses, on any host; it starts with the number of this process."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"


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


def check_folder(folder: Path, option: str) -> None:
    """Check that a folder that the user names can be made, or written to if it exists; leaves nothing behind.

    Raises:
        ConfigError: the system refuses it; names the option.
    """
    try:
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        TemporaryDirectory(dir=nearest).cleanup()
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        problem = "is a file; a folder is needed" if folder.is_file() else f"cannot be written: {error.strerror}"
        raise ConfigError(f"{option} {folder} {problem}") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert the system's errors within this context into an error that names the file.

    Raises:
        WriteError: the disk is full or fails.
    """
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if is_full(error) else error.strerror or str(error)
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
