"""Progress of a run on stderr: a bar on a terminal, plain lines elsewhere."""

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from albert_lab.measures.catalog import labels, units
from albert_lab.messages import duration

PLAIN_SECONDS = 10


@dataclass(frozen=True)
class Position:
    """The place of a run in a study: its number, the number of runs, and work in units of the run's whole budget.

    finetuning is the work of the run's fine-tunings, later that of the study after the run.
    """

    number: int
    of: int
    finetuning: float
    later: float

    @classmethod
    def read(cls, text: str | None) -> "Position":
        """A position from the argument of the process, NUMBER/OF:FINETUNING:LATER; None: a single run."""
        if text is None:
            return cls(1, 1, 0.0, 0.0)
        numbers, finetuning, later = text.split(":")
        number, of = numbers.split("/")
        return cls(int(number), int(of), float(finetuning), float(later))

    @property
    def prefix(self) -> str:
        """The prefix of the run's name; empty for a single run."""
        return f"[{self.number}/{self.of}] " if self.of > 1 else ""


class RunProgress:
    """One bar per run: the current work, its progress, and the time left for the run and for the whole study."""

    def __init__(self, name: str, position: Position, clock: Callable[[], float] = time.monotonic):
        self._name = f"{position.prefix}{name}"
        self._position = position
        self._clock = clock
        self._console = Console(stderr=True)
        self._last_plain = -math.inf
        self._budget_seconds: float | None = None
        self._finetuning_since: float | None = None
        self._bar: Progress | None = None
        if self._console.is_terminal and not os.environ.get("ALBERT_LAB_PLAIN_PROGRESS"):
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f} %  {task.fields[text]}"),
                console=self._console,
                transient=False,
            )
            self._task = self._bar.add_task(self._name, total=1.0, text="starting")
            self._bar.start()

    def show(self, line: dict[str, Any]) -> None:
        if line["event"] == "evaluation":
            self.say(f"step {line['step']:,}, held out: {_words(line)}")
            return
        if line["share"]:
            self._budget_seconds = line["training_seconds"] / line["share"]
        after = self._seconds(self._position.finetuning)
        text = f"step {line['step']:,}  loss {line['loss']:.3f}  {_words(line)}"
        text += f"  {line['tokens_per_second']:,.0f} tokens/s  {self._left(line['seconds_left'] + after)}"
        self._update(line["share"], text)

    def show_finetuning(self, title: str, done: int, total: int) -> None:
        """Show the fine-tuning that starts, the number done and the total."""
        if self._finetuning_since is None:
            self._finetuning_since = self._clock()
        own = self._seconds(self._position.finetuning)
        if done:
            taken = self._clock() - self._finetuning_since
            own = taken / done * (total - done)
            if self._budget_seconds is None and self._position.finetuning:
                # The run was pre-trained earlier: its fine-tunings give the speed.
                self._budget_seconds = taken / done * total / self._position.finetuning
        left = f"  {self._left(own)}" if done or self._budget_seconds else ""
        self._update(done / total, f"fine-tuning {done + 1} of {total}: {title}{left}")

    def _seconds(self, work: float) -> float:
        return work * (self._budget_seconds or 0.0)

    def _left(self, own: float) -> str:
        """The time left for the run and, if there are several runs, for the whole study."""
        text = f"{duration(own)} left"
        return f"{text}, study {duration(own + self._seconds(self._position.later))}" if self._position.of > 1 else text

    def _update(self, share: float, text: str) -> None:
        if self._bar:
            self._bar.update(self._task, completed=share, text=text)
        elif self._clock() - self._last_plain >= PLAIN_SECONDS or share >= 1:
            self._last_plain = self._clock()
            self.say(f"{share:>4.0%}  {text}")

    def say(self, text: str) -> None:
        line = f"{self._name}: {text}"
        if self._bar:
            self._bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar:
            self._bar.stop()


def _words(line: dict[str, Any]) -> str:
    names = labels() | {"pair_accuracy": "pairs"}
    shown = [(label, line.get(key), units().get(key, "%")) for key, label in names.items()]
    return "  ".join(f"{label} {value:.1f} {unit}" for label, value, unit in shown if value is not None)
