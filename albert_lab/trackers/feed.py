"""The lines of a run's log on their way to trackers: one point a step, each sent once, in a thread of its own."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from albert_lab.messages import Say
from albert_lab.trackers.tracker import Tracker, open_run

Point = tuple[int, dict[str, float]]


def points(lines: Iterable[Mapping[str, Any]]) -> Iterator[Point]:
    """The points of the lines of a log: the lines of a step together, numbers by event and name."""
    step, values = 0, {}
    for line in lines:
        if line["step"] != step and values:
            yield step, values
            values = {}
        step = line["step"]
        values |= {
            f"{line['event']}/{key}": float(value)
            for key, value in line.items()
            if key != "step" and isinstance(value, int | float) and not isinstance(value, bool)
        }
    if values:
        yield step, values


class Feed:
    """The trackers of a run, fed by its log. Each is asked what it has, so that a resumed run repeats no point.

    A step is sent when a line of a later one arrives. A tracker that fails is left out, and the run goes on.
    """

    def __init__(self, trackers: Iterable[str], run: str, folder: Path, config: Mapping[str, Any], say: Say):
        """Open the trackers.

        Raises:
            MissingDataError, ConfigError: see open_run().
        """
        self._trackers: dict[str, Tracker] = {name: open_run(name, run, folder, config) for name in trackers}
        self._run, self._say = run, say
        self._step: list[Mapping[str, Any]] = []
        self._queue: SimpleQueue[Point | None] = SimpleQueue()
        self._thread = Thread(target=self._send, name="trackers", daemon=True)
        self._thread.start()

    def take(self, line: Mapping[str, Any]) -> None:
        if self._step and line["step"] != self._step[-1]["step"]:
            self._end_step()
        self._step.append(line)

    def finish(self, scores: Mapping[str, float], step: int) -> None:
        """Add the final scores to the point of the last step, and send it."""
        self.take({"event": "final", "step": step, **scores})
        self._end_step()

    def close(self) -> None:
        """Wait until the points are sent; a resumed run sends that of the last step, which may not be complete."""
        self.drain()
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            for name, tracker in list(self._trackers.items()):
                self._guarded(name, tracker.close)

    def drain(self) -> None:
        """Wait until the points of complete steps are sent; no later point is."""
        self._queue.put(None)
        self._thread.join()

    def _end_step(self) -> None:
        for point in points(self._step):
            self._queue.put(point)
        self._step = []

    def _send(self) -> None:
        while point := self._queue.get():
            step, values = point
            for name, tracker in list(self._trackers.items()):
                if step > tracker.last_step:
                    tracker.last_step = step
                    self._guarded(name, tracker.log, step, values)

    def _guarded(self, name: str, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception as error:  # of a package and a service that are not ours: training goes on
            del self._trackers[name]
            text = " ".join(str(error).split()) or type(error).__name__
            self._say(f"{name}: {text}; it gets no more points (later: albert-lab track {self._run} --to {name})")
