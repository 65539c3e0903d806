"""The end of the program: errors in one line, and the exit code."""

import os
import sys
import traceback
from typing import NoReturn

from albert_lab import own_code, signals
from albert_lab.errors import REFUSED, ConfigError, MissingDataError
from albert_lab.messages import to_stderr


def end(error: BaseException) -> NoReturn:
    """End the process: print an error that a user can cause in one line on stderr, and exit with
    its code.

    After a signal, the exit code is that of the signal for any error, since the signal may have
    caused it.
    """
    message = _message_instead(error)
    code = signals.exit_code()
    if code is not None:
        if not isinstance(error, SystemExit):
            _say("stopped; the same command resumes")
        sys.exit(code)
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    is_known = message is not None or isinstance(error, ConfigError | RuntimeError | OSError)
    if not is_known:
        raise error
    if os.environ.get("ALBERT_LAB_TRACEBACK", "0") not in ("", "0"):
        traceback.print_exception(error)
    _say(message or str(error))
    if isinstance(error, MissingDataError):
        sys.exit(4)
    sys.exit(2 if message or isinstance(error, ConfigError) else 1)


def _message_instead(error: BaseException) -> str | None:
    """What to print in place of an error's own text, if it is none of ours but a user can cause it.

    None for any other: end() prints the text of ours and of the machine's, and raises the rest.
    """
    if isinstance(error, FileNotFoundError) and error.filename is None:  # of getcwd()
        return "the current folder was removed: change to another one"
    if isinstance(error, OSError):
        is_in_proc = str(error.filename).startswith("/proc/")  # ENOENT: nothing can be made there
        is_refused = error.errno in REFUSED or is_in_proc
        remedy = "move what is in the way, or name another folder, as by ALBERT_LAB_HOME"
        return f"{error}; {remedy}" if is_refused else None
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object[:200]!r} is not UTF-8"
    return own_code.suspected(error)


def _say(text: str) -> None:
    try:
        to_stderr(f"albert-lab: {text}")
    except (OSError, ValueError):  # the reader has closed it
        return
