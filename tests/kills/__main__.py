"""Kills and signals at random moments, and whether anything is lost: `python tests/kills --help`.

SIGKILL comes while a checkpoint, a report or a cache file is being written; SIGTERM and SIGINT come
at random function calls of commands, and at random moments of their start; and all three to a study
whose runs train. Every other child is forked from this process, which has imported everything, so
that a hundred of them take minutes.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "report")]

import psutil  # noqa: E402
import torch  # noqa: E402
from toy import silent, toy_config, toy_overrides, write_corpus  # noqa: E402
from toy_reports import compose_figure, toy_report  # noqa: E402

from albert_lab import cli, signals  # noqa: E402
from albert_lab.data.prepare import prepare  # noqa: E402
from albert_lab.data.shards import SPLITS, open_shards  # noqa: E402
from albert_lab.figures import drawing  # noqa: E402
from albert_lab.report import report  # noqa: E402
from albert_lab.runs import reported, results, states, worker  # noqa: E402
from albert_lab.runs import run as runs  # noqa: E402
from albert_lab.storage import PARTIAL  # noqa: E402
from albert_lab.studies import experiment  # noqa: E402

CODES = {signal.SIGTERM: 75, signal.SIGINT: 130}
POLL_SECONDS = 0.0005
BETWEEN = "between"  # no file was being written
# of a command; they set the handlers of signals, and before that a signal is the system's
FIRST_CALLS = 50


class Tally:
    """What fell where, and what went wrong."""

    def __init__(self) -> None:
        self.phases: dict[str, Counter[str]] = {}
        self.wrong: list[str] = []

    def fell(self, series: str, phase: str) -> None:
        print(f"{series}: {phase}", flush=True)
        self.phases.setdefault(series, Counter())[phase] += 1

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)
            print(f"WRONG: {what}", flush=True)


def forked(work: Callable[[], Any]) -> int:
    """The process id of a child that does some work, quietly, and ends with the code that it
    returns.
    """
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        code = work() or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
    finally:
        os._exit(code)


def code_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill(
    work: Callable[[], Any],
    unfinished: Callable[[], list[Path]],
    delay: float,
    tally: Tally,
    of: str,
) -> list[Path]:
    """Kill a child that does some work, a moment after a file that it writes was seen, incomplete;
    the files that it leaves so.
    """
    child = forked(work)
    end = time.monotonic() + 60
    while time.monotonic() < end and not unfinished():
        if psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            break  # it was done before it was seen
        time.sleep(POLL_SECONDS)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    code_of(child)
    left = unfinished()
    tally.fell(of, f"while {left[0].parent.name} was written" if left else BETWEEN)
    return left


def digest(folder: Path, pattern: str = "*") -> dict[str, str]:
    files = sorted(file for file in folder.rglob(pattern) if file.is_file())
    return {
        str(file.relative_to(folder)): hashlib.blake2b(file.read_bytes()).hexdigest()
        for file in files
    }


def what_matters(folder: Path) -> dict[str, Any]:
    """What must not depend on kills: weights, scores, the lines of the log, without clocks."""
    record = results.read(folder)
    assert record is not None
    last = max((folder / "checkpoint").glob("step-" + "[0-9]" * 8))
    weights = hashlib.blake2b((last / "model.safetensors").read_bytes()).hexdigest()
    curve = [point | {"training_seconds": None} for point in reported.curve(folder)]
    scores = {name: score.model_dump() for name, score in record.scores.items()}
    return {
        "weights": weights,
        "scores": scores,
        "curve": curve,
        "loss": record.training.final_loss,
    }


def kill_checkpoints(kills: int, home: Path, random_: random.Random, tally: Tally) -> None:
    config = toy_config(
        home / "text",
        "budget.value=40",
        "machine.checkpoint_seconds=0",
        "machine.log_every_steps=3",
    )

    def begin(name: str) -> Path:
        os.environ["ALBERT_LAB_HOME"] = str(home / name)
        return runs.create(runs.plan(config))

    reference = begin("reference")
    assert worker.main(reference) == 0
    expected = what_matters(reference)
    for done in range(0, kills, 7):
        folder = begin(f"killed-{done}")

        def unfinished(folder: Path = folder) -> list[Path]:
            return list(folder.glob("checkpoint/*.partial-*"))

        def train(folder: Path = folder) -> int:
            return worker.main(folder)

        for _ in range(min(7, kills - done)):
            if states.state(folder) != "done":
                kill(train, unfinished, random_.uniform(0, 0.01), tally, "checkpoint")
        end = worker.main(folder)
        tally.check(end == 0, f"checkpoint: the run ended with {end} after kills")
        tally.check(
            end == 0 and what_matters(folder) == expected,
            f"checkpoint: {folder} differs from one never killed",
        )
        tally.check(not unfinished(), f"checkpoint: half a checkpoint stays in {folder}")
        shutil.rmtree(folder)


def processes_in(home: Path) -> list[psutil.Process]:
    """The processes that train runs in a home."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and re.search(rf"albert_lab\.runs.* {home}/", " ".join(process.info["cmdline"] or []))
    ]


def until(condition: Callable[[], Any], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def kill_parents(kills: int, home: Path, random_: random.Random, tally: Tally) -> None:
    """Signals to a study whose runs train: none goes on unseen, and the same command ends as if
    nothing had been.
    """
    settings = ["budget.value=600", "dropout=0.1", "machine.checkpoint_seconds=0.5", "seed=0,1"]
    sweep = ["sweep", *toy_overrides(home / "text", *settings), "--tasks", "none", "--jobs", "2"]
    command = [sys.executable, "-m", "albert_lab.cli", *sweep]

    def start(folder: Path) -> "subprocess.Popen[bytes]":
        environment = os.environ | {"ALBERT_LAB_HOME": str(folder)}
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def ends_of(folder: Path) -> dict[str, Any]:
        return {run.name: what_matters(run) for run in sorted((folder / "runs").iterdir())}

    reference, folder = home / "parents-reference", home / "parents-killed"
    tally.check(start(reference).wait() == 0, "parents: the reference failed")
    expected = ends_of(reference)
    for number in range(kills):
        study = start(folder)
        until(lambda study=study: processes_in(folder) or study.poll() is not None, 120)
        time.sleep(random_.uniform(0, 8))
        which = random_.choice([signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
        study.send_signal(which)
        code = study.wait()
        tally.fell("parents", f"{which.name}: {code}")
        tally.check(code in (0, -which, CODES.get(which)), f"parents: {code} after {which.name}")
        allowed = 10 if which == signal.SIGKILL else 0
        tally.check(
            until(lambda: not processes_in(folder), allowed),
            f"parents: a run goes on after {which.name}",
        )
        if code == 0 or number == kills - 1:
            tally.check(start(folder).wait() == 0, "parents: the same command failed")
            tally.check(ends_of(folder) == expected, "parents: a run differs from one never killed")
            shutil.rmtree(folder)


def kill_reports(kills: int, home: Path, random_: random.Random, tally: Tally) -> None:
    asked = experiment.named("sop-vs-nsp")
    with patch.object(drawing, "write", compose_figure):
        folder = toy_report(home / "report" / "sop-vs-nsp", asked)
        report.rebuild(folder)
        expected = digest(folder)

        def rebuild() -> None:
            while True:
                report.rebuild(folder)

        for _ in range(kills):
            delay = random_.uniform(0, 0.001)
            for file in kill(rebuild, lambda: [*folder.glob(".*")], delay, tally, "report"):
                file.unlink()
            tally.check(digest(folder) == expected, "report: a file is not whole")
        report.rebuild(folder)
        tally.check(digest(folder) == expected, "report: it cannot be made again")


def kill_caches(kills: int, home: Path, random_: random.Random, tally: Tally) -> None:
    config = toy_config(home / "text", "tokenizer.vocab_size=48")
    os.environ["ALBERT_LAB_CACHE"] = str(home / "cache-reference")
    expected = digest(prepare(config, silent), "*.tokens")
    cache = home / "cache-killed"
    os.environ["ALBERT_LAB_CACHE"] = str(cache)

    def unfinished() -> list[Path]:
        return list(cache.glob(f"*/.*{PARTIAL}*"))

    for number in range(kills):
        shutil.rmtree(cache / "shards" if number % 2 else cache, ignore_errors=True)
        kill(
            lambda: prepare(config, silent) and 0,
            unfinished,
            random_.uniform(0, 0.2),
            tally,
            "cache",
        )
        try:
            folder = prepare(config, silent)
            tally.check(
                digest(folder, "*.tokens") == expected, "cache: other tokens than without kills"
            )
            for split in SPLITS:
                open_shards(folder, split)
        except Exception as error:
            tally.check(False, f"cache: {type(error).__name__}: {error}")
        tally.check(not unfinished(), "cache: half-made data stays")


def command(
    arguments: list[str], number: int | None, at: int, counted: list[int] | None = None
) -> Callable[[], None]:
    """The work of a command in this process, with a signal to itself at one of its function
    calls.
    """

    def work() -> None:
        calls = 0

        def profile(frame: Any, event: str, _argument: Any) -> None:
            nonlocal calls
            if frame.f_code is signals.finish.__code__:  # what it did is done: no signal counts
                sys.setprofile(None)
            elif event in ("call", "c_call"):
                calls += 1
                if calls == at and number is not None:
                    os.kill(os.getpid(), number)

        sys.argv = ["albert-lab", *arguments]
        sys.setprofile(profile)
        try:
            cli.main()
        finally:
            sys.setprofile(None)
            if counted is not None:
                os.write(counted[0], str(calls).encode())

    return work


def signals_at_calls(number: int, home: Path, random_: random.Random, tally: Tally) -> None:
    os.environ["ALBERT_LAB_HOME"] = str(home / "signals")
    os.environ.pop("ALBERT_LAB_CACHE", None)
    sweep = ["sop-vs-nsp", *toy_overrides(home / "text", "budget.value=2"), "--tasks", "none"]
    first = code_of(forked(command(sweep, None, 0)))
    assert first == 0, first
    commands = [["config", "list"], sweep, [*sweep, "--dry-run"], ["status"], ["config", "show"]]
    usable = []
    for arguments in commands:
        read, write = os.pipe()
        code = code_of(forked(command(arguments, None, 0, [write])))
        os.close(write)
        calls = int(os.read(read, 100) or 0)
        os.close(read)
        if code == 0:
            usable.append((arguments, calls))
    reports = home / "signals" / "reports"
    expected = digest(reports, "*.[cj]s*")
    assert expected
    for _ in range(number):
        arguments, calls = random_.choice(usable)
        which = random_.choice(list(CODES))
        at = random_.randrange(FIRST_CALLS, calls)
        code = code_of(forked(command(arguments, which, at)))
        tally.fell("signals at calls", f"{arguments[0]} {arguments[-1]}: {code}")
        tally.check(
            code == CODES[which],
            f"signals: {arguments[:2]} call {at} of {calls}: {code}, not {CODES[which]}",
        )
        now = {
            name: hashed for name, hashed in digest(reports, "*.[cj]s*").items() if "/." not in name
        }
        tally.check(now == expected, f"signals: a table or a record differs after {arguments[:2]}")


def signals_at_start(number: int, home: Path, random_: random.Random, tally: Tally) -> None:
    """Signals to a process of its own, from its first moment on; before Python runs our code, it is
    the system's.
    """
    os.environ["ALBERT_LAB_HOME"] = str(home / "signals")
    arguments = [sys.executable, "-m", "albert_lab.cli", "config", "list"]
    started = time.monotonic()
    subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    seconds = time.monotonic() - started
    for _ in range(number):
        which = random_.choice(list(CODES))
        child = subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        time.sleep(random_.uniform(0, 0.9 * seconds))
        child.send_signal(which)
        said = child.communicate()[1]
        code = child.returncode
        before_us = code == -which or (
            which == signal.SIGINT and "Traceback" in said and "albert_lab/signals" not in said
        )
        phase = "before our code ran" if before_us else "done before" if code == 0 else f"{code}"
        tally.fell("signals at the start", phase)
        tally.check(
            before_us or code in (0, CODES[which]),
            f"start: {code} after {which.name}: {said[-300:]}",
        )
        tally.check(
            before_us or "Traceback" not in said,
            f"start: a traceback after {which.name}: {said[-300:]}",
        )


SERIES = {
    kill_reports: 34,
    kill_caches: 34,
    signals_at_calls: 160,
    signals_at_start: 40,
    kill_parents: 18,
    kill_checkpoints: 34,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1, help="of the usual number of each series")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)  # threads do not survive a fork
    random_, tally = random.Random(arguments.seed), Tally()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        os.environ["ALBERT_LAB_CACHE"] = str(home / "cache")
        write_corpus(home / "text")
        for series, usual in SERIES.items():
            started, number = time.monotonic(), max(1, round(arguments.share * usual))
            series(number, home, random_, tally)
            print(f"{series.__name__}: {number} in {time.monotonic() - started:,.0f} s", flush=True)
    for name in ("report", "cache", "checkpoint"):
        tally.check(
            set(tally.phases[name]) != {BETWEEN}, f"{name}: no kill fell while anything was written"
        )
    print(json.dumps({"phases": tally.phases, "wrong": tally.wrong}, indent=2))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
