import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from albert_lab import signals
from albert_lab.cli.ending import end
from albert_lab.errors import ConfigError

ERRORS = [
    AttributeError("'NoneType' object has no attribute 'x'"),
    ConfigError("x"),
    SystemExit(2),
    OSError("x"),
]


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


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_a_traceback_is_shown_if_it_is_asked_for_and_changes_no_exit_code(
    monkeypatch, capsys, value
):
    monkeypatch.setenv("ALBERT_LAB_TRACEBACK", value)
    with pytest.raises(SystemExit) as ended:
        end(ConfigError("x"))
    assert ended.value.code == 2
    assert ("albert_lab.errors.ConfigError" in capsys.readouterr().err) == (value == "1")


def test_the_package_imports_no_typing_before_signals_are_handled():
    script = (
        "import sys, albert_lab; assert not {'typing', 're', 'enum'} & sys.modules.keys(), "
        "sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-S", "-c", script], cwd=Path(__file__).parents[1], check=True)


TWICE = """
import os, signal
from albert_lab import signals
with signals.deferred(ends_at_second=True), {state}:
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)
os._exit(7)
"""


@pytest.mark.parametrize(("state", "code"), [("open(os.devnull)", 75), ("signals.unsaved()", 7)])
def test_a_second_signal_ends_a_process_at_once_unless_it_has_a_state_to_save(state, code):
    assert (
        subprocess.run([sys.executable, "-c", TWICE.format(state=state)], check=False).returncode
        == code
    )


def test_a_process_whose_parent_is_killed_is_asked_to_stop(tmp_path):
    child = f"""
import os, time
from albert_lab import signals
with signals.deferred() as received:
    signals.end_with_parent()
    open({str(tmp_path / "begun")!r}, "w").close()
    while not received:
        time.sleep(0.05)
open({str(tmp_path / "saved")!r}, "w").close()
"""
    parent = f"""
import os, subprocess, sys
os.environ["ALBERT_LAB_PARENT"] = str(os.getpid())
subprocess.run([sys.executable, "-c", {child!r}])
"""
    process = subprocess.Popen([sys.executable, "-c", parent])
    until((tmp_path / "begun").exists)
    assert not (tmp_path / "saved").exists()
    process.kill()
    process.wait()
    until((tmp_path / "saved").exists)


def until(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
