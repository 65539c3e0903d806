"""What a run says of itself on stderr: a line now and then, which a study collects in its log."""

import math
import time
from collections.abc import Callable
from typing import Any

from albert_lab.measures.catalog import labels, units
from albert_lab.messages import duration, to_stderr

SECONDS = 10


class Lines:
    """The lines of a run, each after its name; of its steps at most one in ten seconds, and the last."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock, self._last = name, clock, -math.inf

    def say(self, text: str) -> None:
        to_stderr(f"{self._name}: {text}")

    def show(self, line: dict[str, Any]) -> None:
        """Say what a line of the run's log has."""
        if line["event"] == "evaluation":
            self.say(f"step {line['step']:,}, held out: {_words(line)}")
        elif self._clock() - self._last >= SECONDS or line["share"] >= 1:
            self._last = self._clock()
            speed = f"{line['tokens_per_second']:,.0f} tokens/s  {duration(line['seconds_left'])} left"
            self.say(f"{line['share']:.0%}  step {line['step']:,}  loss {line['loss']:.3f}  {_words(line)}  {speed}")

    def show_finetuning(self, title: str, done: int, total: int) -> None:
        """Say which fine-tuning starts, after how many, of how many."""
        self.say(f"fine-tuning {done + 1} of {total}: {title}")


def _words(line: dict[str, Any]) -> str:
    names = labels() | {"pair_accuracy": "pairs"}
    shown = [(label, line.get(key), units().get(key, "%")) for key, label in names.items()]
    return "  ".join(f"{label} {value:.1f} {unit}" for label, value, unit in shown if value is not None)
