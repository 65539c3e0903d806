"""Requests to stop this process: a signal sets a flag, which decides the exit code whatever error follows.

A signal may arrive at any instruction: within an import, a callback, a destructor. The exception that it raises there
can be replaced by another error or swallowed, so the flag counts.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from albert_lab.errors import INTERRUPTED, STOPPED

# A closed terminal stops a command as SIGTERM does, unless it was started with nohup.
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[: 2 + (signal.getsignal(signal.SIGHUP) != signal.SIG_IGN)]
_received: list[int] = []


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
    return (INTERRUPTED if _received[0] == signal.SIGINT else STOPPED) if _received else None


@contextmanager
def deferred() -> Iterator[list[int]]:
    """Within this context, signals do not interrupt: they are appended to the yielded list."""
    before = {number: signal.signal(number, lambda number, _: _received.append(number)) for number in NUMBERS}
    try:
        yield _received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _frame: Any) -> NoReturn:
    _received.append(number)
    if len(_received) > 1:  # the second signal ends the process immediately, which is safe, since writes are atomic
        os._exit(exit_code() or STOPPED)
    raise Stop(number)
