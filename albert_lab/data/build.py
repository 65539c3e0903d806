"""Building a folder of the cache: once, by one process at a time, completely or not at all."""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from albert_lab import storage
from albert_lab.messages import Say


def find_or_build(folder: Path, build: Callable[[Path], None], say: Say) -> Path:
    """The folder; builds it first if it does not exist.

    The folder appears by one rename when all of it is on disk. A build that is killed leaves only a partial folder,
    which the next build removes. A second process waits for the first.

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
        for partial in folder.parent.glob(f".{folder.name}{storage.PARTIAL}*"):  # of a killed holder of the lock
            storage.remove(partial)
        with storage.replacing(folder) as partial:
            partial.mkdir()
            build(partial)
    return folder


def in_process(function: Callable[..., None], *arguments: Any) -> None:
    """Calls a function in a process of its own, whose end frees its memory; a signal here ends that process.

    Raises:
        MemoryError: the process was killed.
        Exception: what the function raised.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    try:
        error = ours.recv()
    except EOFError:
        raise MemoryError(f"the process of {function.__name__} was killed, maybe for its memory") from None
    finally:
        process.kill()
        process.join()
    if error:
        raise error


def _call(pipe: Connection, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pipe.send(function(*arguments))
    except Exception as error:
        pipe.send(error)
