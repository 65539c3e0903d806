"""Progress of a run on stderr: a bar on a terminal, plain lines elsewhere."""

import os
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

PLAIN_SECONDS = 10


class RunProgress:
    """Shows step, share of the budget, loss, MLM and pair accuracy, pieces a second and the time left."""

    def __init__(self, name: str):
        self._name = name
        self._console = Console(stderr=True)
        self._last_plain = 0.0
        self._bar: Progress | None = None
        if self._console.is_terminal and not os.environ.get("ALBERT_LAB_PLAIN_PROGRESS"):
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f} %  {task.fields[text]}"),
                console=self._console,
                transient=False,
            )
            self._task = self._bar.add_task(name, total=1.0, text="starting")
            self._bar.start()

    def show(self, line: dict[str, Any]) -> None:
        """Show a line of metrics."""
        if line["event"] == "evaluation":
            accuracies = {key: value for key, value in line.items() if key.endswith("_accuracy")}
            self.say(f"step {line['step']:,}, held out: " + _words(accuracies))
            return
        text = (
            f"step {line['step']:,}  loss {line['loss']:.3f}  {_words(line)}  {line['tokens_per_second']:,.0f} pieces/s"
        )
        text += f"  {_duration(line['seconds_left'])} left"
        if self._bar:
            self._bar.update(self._task, completed=line["share"], text=text)
        elif time.monotonic() - self._last_plain >= PLAIN_SECONDS or line["share"] >= 1:
            self._last_plain = time.monotonic()
            self.say(f"{line['share']:>4.0%}  {text}")

    def say(self, text: str) -> None:
        """Print a line of text, above the bar where there is one."""
        line = f"{self._name}: {text}"
        if self._bar:
            self._bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar:
            self._bar.stop()


def _words(line: dict[str, Any]) -> str:
    names = {"mlm_accuracy": "MLM", "pair_accuracy": "pairs", "nsp_accuracy": "NSP", "sop_accuracy": "SOP"}
    found = [(label, line.get(key)) for key, label in names.items()]
    return "  ".join(f"{label} {value:.1f} %" for label, value in found if value is not None)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
