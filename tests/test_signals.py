import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from albert_lab import signals
from albert_lab.cli.ending import end
from albert_lab.errors import ConfigError

ERRORS = [AttributeError("'NoneType' object has no attribute 'x'"), ConfigError("x"), SystemExit(2), OSError("x")]


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Restores the handlers and the recorded signals after each test."""
    handlers = {number: signal.getsignal(number) for number in signals.NUMBERS}
    monkeypatch.setattr(signals, "_received", [])
    monkeypatch.delenv("ALBERT_LAB_TRACEBACK", raising=False)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_the_exit_code_is_that_of_the_signal_for_any_following_error(number, code, error):
    signals.listen()
    with pytest.raises(signals.Stop):
        os.kill(os.getpid(), number)
    with pytest.raises(SystemExit) as ended:
        end(error)
    assert ended.value.code == code


def test_the_package_imports_no_typing_before_signals_are_handled():
    script = "import sys, albert_lab; assert not {'typing', 're', 'enum'} & sys.modules.keys(), sys.modules.keys()"
    subprocess.run([sys.executable, "-S", "-c", script], cwd=Path(__file__).parents[1], check=True)


def test_a_deferred_signal_does_not_interrupt_and_is_recorded():
    signals.listen()
    with signals.deferred() as received:
        os.kill(os.getpid(), signal.SIGTERM)
    assert received == [signal.SIGTERM]
    assert signals.exit_code() == 75


def test_a_process_ends_soon_after_the_one_that_started_it():
    script = "from albert_lab import signals; signals.end_with_parent(); print(flush=True); import time; time.sleep(60)"
    parent = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {script!r}], env=os.environ | {{"{signals.PARENT}": str(os.getpid())}},
    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # else the pipe below would stay open as long as the child lives
child.stdout.readline()
print(child.pid)
"""
    said = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=True).stdout
    psutil.wait_procs([psutil.Process(int(said))] if psutil.pid_exists(int(said)) else [], timeout=20)
    assert not psutil.pid_exists(int(said)) or psutil.Process(int(said)).status() == psutil.STATUS_ZOMBIE
