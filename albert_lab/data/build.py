"""Building a folder of the cache: once, by one process at a time, completely or not at all."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from albert_lab import storage
from albert_lab.errors import WriteError
from albert_lab.messages import Say


def find_or_build(folder: Path, build: Callable[[Path], None], what: str, say: Say) -> Path:
    """The folder; builds it first if it does not exist.

    The folder appears by one rename when all of it is on disk. A build that is killed leaves only a partial folder,
    which the next build removes. A second process waits for the first.

    Args:
        folder: Its path; the name must identify the content.
        build: Fills the (empty) folder given to it.

    Raises:
        WriteError: no space left; no part of the folder is kept.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with storage.locked(storage.lock_of(folder), lambda: say(f"another process is preparing {what}: waiting for it")):
        if folder.is_dir():
            return folder
        for partial in folder.parent.glob(f"*{storage.PARTIAL}*"):
            if storage.completed(partial) == folder:  # only the holder of the lock makes them
                storage.remove(partial)
        try:
            with storage.replacing(folder) as partial:
                partial.mkdir()
                build(partial)
        except OSError as error:
            if storage.is_full(error):
                raise WriteError(f"the disk is full: writing {what} to {folder.parent} failed") from error
            raise
    return folder


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()  # its task may run for minutes more
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    # A worker waits for tasks on a pipe that it keeps open itself, so it would outlive a killed parent.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
