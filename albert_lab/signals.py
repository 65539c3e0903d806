"""Requests to stop this process: SIGINT or SIGTERM is recorded when it arrives, and determines the exit code.

A signal may arrive at any instruction: within an import, a callback, a destructor. Raising an exception there is not
enough, since it can be replaced by another error or swallowed. So the first signal is recorded, and determines the
exit code whatever error follows.
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
# Seconds that a process has to end after a signal; then it is killed, which is safe, since all writes are atomic.
GRACE_SECONDS = 10.0
PARENT = "ALBERT_LAB_PARENT"
_PARENT_POLL_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1

_first: int | None = None
_before = sys.unraisablehook


class Stop(BaseException):
    """A signal arrived while this process was working."""


def listen() -> None:
    """Start to record signals, which interrupt the work of this process; earlier signals are discarded."""
    global _first, _before
    _first = None
    assert sys.platform != "win32"  # which the program refuses
    if sys.unraisablehook is not _unraisable:
        _before, sys.unraisablehook = sys.unraisablehook, _unraisable
    signal.signal(signal.SIGALRM, _end_now)
    for number in NUMBERS:
        signal.signal(number, _stop)
    let_through()


def finish() -> None:
    """Mark the work as done and its exit code as final: later signals have no effect."""
    assert sys.platform != "win32"
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def exit_code() -> int | None:
    return None if _first is None else code_of(_first)


def code_of(number: int) -> int:
    return INTERRUPTED if number == signal.SIGINT else STOPPED


@contextmanager
def deferred(tell: Callable[[int], None] | None = None) -> Iterator[list[int]]:
    """Within this context, signals do not interrupt: they are appended to the yielded list, and reported."""
    came: list[int] = []

    def note(number: int, _frame: Any) -> None:
        _remember(number)
        came.append(number)
        if tell:
            tell(number)

    before = {number: signal.signal(number, note) for number in NUMBERS}
    let_through()
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """Within this context, signals are blocked, also in a child that is started here, until the child handles them."""
    assert sys.platform != "win32"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through() -> None:
    """Handle the signals that were blocked while this process was started."""
    assert sys.platform != "win32"
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)


def end_with_parent() -> None:
    """Receive SIGTERM when the parent process, given in $ALBERT_LAB_PARENT, ends.

    On Linux, the kernel sends it. On other systems, a thread checks the parent once per second.
    """
    parent = int(os.environ.pop(PARENT, "0"))
    if not parent:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the request to the kernel
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
    if _first is not None:  # the second signal ends the process immediately
        _end_now(number, None)
    _remember(number)
    assert sys.platform != "win32"
    signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
    raise Stop(number)


def _unraisable(error: "sys.UnraisableHookArgs") -> None:
    """End the process if Python swallowed a Stop, as it does with errors of destructors and callbacks."""
    if isinstance(error.exc_value, Stop):
        _end_now(0, None)
    _before(error)


def _end_now(_number: int, _frame: Any) -> NoReturn:
    os._exit(STOPPED if _first is None else code_of(_first))
