"""The growth of the time of a study with its number of runs, one at a time and several."""

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from albert_lab.config.compose import load
from albert_lab.cost.listing import Listing
from albert_lab.errors import ConfigError
from albert_lab.machine import cores, cpu_model

RUNS = (1, 2, 4, 8)
JOBS = (1, 2)
CONFIG_ERROR = 2  # exit code of a command that was given an invalid setting


@dataclass(frozen=True)
class StudyTime:
    """The time of a study of some runs, at most `jobs` of them at a time."""

    runs: int
    jobs: int
    seconds: float


@dataclass(frozen=True)
class StudyGrowth:
    """The times of studies, by jobs and then by runs, and the configuration of every run as overrides."""

    times: tuple[StudyTime, ...]
    overrides: tuple[str, ...]

    @property
    def jobs(self) -> list[int]:
        """The numbers of simultaneous runs, in order."""
        return list(dict.fromkeys(each.jobs for each in self.times))

    def of(self, jobs: int) -> list[StudyTime]:
        """The times of studies with so many simultaneous runs."""
        return [each for each in self.times if each.jobs == jobs]

    def as_text(self) -> str:
        """A table of all studies, with notes."""
        rows = [
            {
                "runs": each.runs,
                "at a time": each.jobs,
                "seconds": f"{each.seconds:,.1f}",
                "seconds a run": f"{each.seconds / each.runs:,.1f}",
                "times one at a time": f"{each.seconds / alone.seconds:.2f}",
            }
            for jobs in self.jobs
            for each, alone in zip(self.of(jobs), self.of(self.jobs[0]), strict=True)
        ]
        return Listing(rows, self._notes()).as_text()

    def as_dict(self) -> dict[str, Any]:
        """The growth as plain data, in seconds."""
        return {"studies": [asdict(each) for each in self.times], "study_notes": self._notes()}

    def _notes(self) -> list[str]:
        settings = " ".join(self.overrides) or "the default configuration"
        measured = f"Once each, with prepared text, on {cores()} cores ({cpu_model()}): {settings}."
        return [measured, *(_describe(self.of(jobs)) for jobs in self.jobs)]


def measure(
    overrides: Sequence[str], *, say: Callable[[str], None], runs: Sequence[int] = RUNS, jobs: Sequence[int] = JOBS
) -> StudyGrowth:
    """The times of whole studies without downstream tasks, each a command of its own in an empty home.

    Args:
        overrides: `key=value` texts of the configuration of every run; the runs of a study differ in their seed.
        say: receives progress lines.
        runs: the numbers of runs, ascending.
        jobs: the numbers of simultaneous runs.

    Raises:
        ConfigError: an invalid configuration, one with a seed, or one whose text cannot be used.
        RuntimeError: a study failed; the message ends with the last line of its output.
    """
    load(overrides)
    if seeds := [text for text in overrides if text.startswith("seed=")]:
        raise ConfigError(f"{seeds[0]}: the runs of these studies differ in their seed, which cannot be given")
    times = []
    with tempfile.TemporaryDirectory() as folder:
        say("studies: preparing the text")
        _seconds(overrides, 1, 1, Path(folder) / "prepared")
        for number in jobs:
            for size in runs:
                seconds = _seconds(overrides, size, number, Path(folder) / f"{size}-{number}")
                say(f"studies: {size} run{'s' * (size > 1)}, at most {number} at a time: {seconds:,.1f} s")
                times.append(StudyTime(size, number, seconds))
    return StudyGrowth(tuple(times), tuple(overrides))


def _seconds(overrides: Sequence[str], runs: int, jobs: int, home: Path) -> float:
    seeds = f"seed={','.join(map(str, range(runs)))}"
    words = ["sweep", *overrides, seeds, "--tasks", "none", "--jobs", str(jobs)]
    own = {"ALBERT_LAB_HOME": str(home), "ALBERT_LAB_CACHE": str(home.parent / "cache")}
    # Without earlier reports, whose runs would not be made again.
    own |= {"ALBERT_LAB_REPORTS": "", "ALBERT_LAB_PUBLISHED": str(home / "published")}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "albert_lab.cli", *words],
        env=os.environ | own,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        failed = ConfigError if done.returncode == CONFIG_ERROR else RuntimeError
        raise failed(f"a study with {seeds} ended with exit code {done.returncode}: {last}")
    return time.perf_counter() - start


def _describe(times: Sequence[StudyTime]) -> str:
    """One sentence: the exponent of the time in the number of runs, from the smallest study to the largest."""
    first, last = times[0], times[-1]
    exponent = math.log(last.seconds / first.seconds) / math.log(last.runs / first.runs) if len(times) > 1 else 1.0
    return (
        f"{first.jobs} at a time: from {first.runs} to {last.runs} runs the time of a study grows with the power"
        f" {exponent:.2f} of their number."
    )
