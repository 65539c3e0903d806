"""The end of the program: errors in one line, and the exit code."""

import os
import sys
from typing import NoReturn

from albert_lab import own_code, signals
from albert_lab.errors import REFUSED, ConfigError, MissingDataError


def end(error: BaseException) -> NoReturn:
    """End the process: print an error that a user can cause in one line on stderr, and exit with its code.

    After a signal, the exit code is that of the signal for any error, since the signal may have caused it.
    """
    code = signals.exit_code()
    if os.environ.get("ALBERT_LAB_TRACEBACK") and isinstance(error, Exception):
        raise error
    if code is not None:
        if not isinstance(error, SystemExit):
            _say("stopped; the same command resumes")
        sys.exit(code)
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    if isinstance(error, OSError):
        is_in_proc = str(error.filename).startswith("/proc/")  # ENOENT: nothing can be made there
        is_refused = error.errno in REFUSED or is_in_proc
        wrong = f"{error}; ALBERT_LAB_HOME can name another folder" if is_refused else None
    else:
        is_text = isinstance(error, UnicodeEncodeError)
        wrong = f"{error.object[:200]!r} is not UTF-8" if is_text else own_code.suspected(error)
    if not wrong and not isinstance(error, ConfigError | RuntimeError | OSError):
        raise error
    _say(wrong or str(error))
    sys.exit(4 if isinstance(error, MissingDataError) else 2 if wrong or isinstance(error, ConfigError) else 1)


def _say(text: str) -> None:
    try:
        print(f"albert-lab: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError):  # the reader has closed it
        return
