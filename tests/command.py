"""The command line and its runs in this process, for tests that do not need a separate process."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

from albert_lab import cli
from albert_lab.data.files import digest_path, known_digests
from albert_lab.errors import INTERRUPTED, STOPPED, UNWRITTEN
from albert_lab.runs import worker
from albert_lab.runs.run import is_trained
from albert_lab.signals import NUMBERS
from albert_lab.studies.jobs import Job

PLAIN = {"COLUMNS": "120", "NO_COLOR": "1"}


@contextlib.contextmanager
def own_signals() -> Iterator[None]:
    """Restores the signal handlers that commands change in this process."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def here(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The output and exit code of `albert-lab ARGUMENTS`, executed in this process; its runs are
    separate processes.
    """
    known_digests.clear()  # as in a new process
    digest_path.cache_clear()
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        own_signals(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["albert-lab", *arguments]),
        mock.patch.dict(os.environ, PLAIN | environment),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
    assert isinstance(code, int)
    return subprocess.CompletedProcess(list(arguments), code, out.getvalue(), err.getvalue())


def there(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "albert_lab.cli", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | PLAIN | environment,
        check=False,
    )


def launch_here(jobs: Sequence[Job], at_once: int, on_end: Callable[[Job, int], None]) -> int:
    """A replacement of the local launcher that executes runs sequentially in this process."""
    assert at_once
    with own_signals():
        for job in jobs:
            if job.parent and not is_trained(job.parent):
                continue
            code = worker.command(*job.command[job.command.index("albert_lab.runs.worker") + 1 :])
            if code in (STOPPED, INTERRUPTED, UNWRITTEN):
                return code
            on_end(job, code)
    return 0
