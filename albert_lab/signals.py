"""Requests to stop this process: a signal sets a flag, which decides the exit code whatever error
follows.

A signal may arrive at any instruction: within an import, a callback, a destructor. The exception
that it raises there can be replaced by another error or swallowed, so the flag counts.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from albert_lab.errors import INTERRUPTED, STOPPED

# A closed terminal stops a command as SIGTERM does, unless it was started with nohup.
_HANGS_UP = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
NUMBERS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if _HANGS_UP else []))
# of the environment: the number of the process that waits for this one
PARENT = "ALBERT_LAB_PARENT"
_WATCH_SECONDS = 1.0
_received: list[int] = []
_unsaved: list[object] = []  # an entry for each state that is in memory alone


class Stop(BaseException):
    """A signal arrived while this process was working."""


def listen() -> None:
    """From here on a signal interrupts the work of this process; earlier signals are forgotten."""
    _received.clear()
    for number in NUMBERS:
        signal.signal(number, _stop)


def finish() -> None:
    """Mark the work as done and its exit code as final: later signals have no effect."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def exit_code() -> int | None:
    """The exit code of this process, if it was asked to stop."""
    if not _received:
        return None
    return INTERRUPTED if _received[0] == signal.SIGINT else STOPPED


@contextmanager
def deferred(*, ends_at_second: bool = False) -> Iterator[list[int]]:
    """Within this context, signals do not interrupt: they are appended to the yielded list.

    ends_at_second: the second one ends the process at once, unless it has a state to save.
    """
    handler = _note_or_end if ends_at_second else _note
    before = {number: signal.signal(number, handler) for number in NUMBERS}
    try:
        yield _received
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def unsaved() -> Iterator[None]:
    """Within this context the process has a state to save: no number of signals ends it before."""
    state = object()
    _unsaved.append(state)
    try:
        yield
    finally:
        _unsaved.remove(state)


def end_with_parent() -> None:
    """Ask this process to stop as soon as the one that started it is gone, if that waits for it.

    So a command that is killed leaves no run that goes on unseen.
    """
    parent = os.environ.pop(PARENT, None)  # children of this process have another parent
    if parent is not None:
        threading.Thread(target=_wait_for_end_of, args=[int(parent)], daemon=True).start()


def _wait_for_end_of(parent: int) -> None:
    while os.getppid() == parent:  # a process whose parent has ended gets another one
        time.sleep(_WATCH_SECONDS)
    for _ in range(2):  # nobody waits for what has nothing to save
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_WATCH_SECONDS)


def _note(number: int, _frame: Any) -> None:
    _received.append(number)


def _note_or_end(number: int, frame: Any) -> None:
    _note(number, frame)
    if len(_received) > 1 and not _unsaved:
        os._exit(exit_code() or STOPPED)


def _stop(number: int, frame: Any) -> NoReturn:
    # The second signal ends the process immediately, which is safe, since writes are atomic.
    _note_or_end(number, frame)
    raise Stop(number)
