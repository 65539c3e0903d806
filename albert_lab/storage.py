"""Atomic writes: a file is completely on the disk or not at all."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from albert_lab import owners
from albert_lab.errors import ConfigError, WriteError

# Reasons that depend on the place of a folder; others, such as a full disk, are no mistake of the user.
_REFUSALS = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file atomically, text as UTF-8.

    Raises:
        WriteError: the disk is full or fails; an earlier file is unchanged, and no other file remains.
    """
    temporary = path.with_name(f".{path.name}.{owners.own()}")
    with writing(path):
        try:
            with temporary.open("wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


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
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if is_full else error.strerror or str(error)
        raise WriteError(f"{path} could not be written: {reason}") from error


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
