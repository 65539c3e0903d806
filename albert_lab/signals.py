"""Requests to stop this process: SIGINT or SIGTERM, remembered from the moment it arrives, and its exit code.

A signal may come at any instruction: within an import, a callback, a destructor. Raising there is not enough, since
what is raised can be replaced by another error or swallowed. So the first signal is remembered, and the exit code
follows from it whatever error comes next.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from albert_lab.errors import INTERRUPTED, STOPPED

NUMBERS = (signal.SIGINT, signal.SIGTERM)
# How long a process may take to end after a signal; then it is ended, as whatever it writes allows at any moment.
GRACE_SECONDS = 10.0
PARENT = "ALBERT_LAB_PARENT"
_PARENT_POLL_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1

_first: int | None = None


class Stop(BaseException):
    """A signal arrived while this process was working."""


def listen() -> None:
    """From now on, a signal is remembered and interrupts the work of this process; earlier ones are forgotten."""
    global _first
    _first = None
    signal.signal(signal.SIGALRM, _end_now)
    for number in NUMBERS:
        signal.signal(number, _stop)
    let_through()


def finish() -> None:
    """The work is done and its exit code is final: later signals change nothing."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def exit_code() -> int | None:
    """The exit code of the first signal; None where there was none."""
    return None if _first is None else code_of(_first)


def code_of(number: int) -> int:
    """The exit code of a process that this signal stopped."""
    return INTERRUPTED if number == signal.SIGINT else STOPPED


@contextmanager
def deferred(tell: Callable[[int], None] | None = None) -> Iterator[list[int]]:
    """Inside this context signals stop nothing: they are added to the list that it gives, and reported."""
    found: list[int] = []

    def note(number: int, _frame: Any) -> None:
        _remember(number)
        found.append(number)
        if tell:
            tell(number)

    before = {number: signal.signal(number, note) for number in NUMBERS}
    let_through()
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """Inside this context signals wait, also in a child that is started here, until it handles them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through() -> None:
    """Handle the signals that were blocked while this process was started."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)


def end_with_parent() -> None:
    """Receive SIGTERM when the process that started this one, named in $ALBERT_LAB_PARENT, ends.

    On Linux the kernel sends it. Elsewhere a thread asks once a second whose child this process is.
    """
    parent = int(os.environ.pop(PARENT, "0"))
    if not parent:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the kernel was asked
            os.kill(os.getpid(), signal.SIGTERM)
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _remember(number: int) -> None:
    global _first
    if _first is None:
        _first = number


def _stop(number: int, _frame: Any) -> NoReturn:
    if _first is not None:  # asked twice: at once
        _end_now(number, None)
    _remember(number)
    signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
    raise Stop(number)


def _end_now(_number: int, _frame: Any) -> NoReturn:
    os._exit(STOPPED if _first is None else code_of(_first))
