"""Building a folder of the cache: once, by one process at a time, completely or not at all."""

from collections.abc import Callable
from pathlib import Path

from albert_lab import storage
from albert_lab.messages import Say


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
    with storage.locked(folder.with_name(folder.name + storage.LOCK), say):
        if folder.is_dir():
            return folder
        # of a killed holder of the lock
        for partial in folder.parent.glob(f".{folder.name}{storage.PARTIAL}*"):
            storage.remove(partial)
        with storage.replacing(folder) as partial:
            partial.mkdir()
            build(partial)
    return folder
