"""The log of a run during training: metrics.jsonl, whose lines trackers may receive too."""

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from albert_lab.errors import DamagedFileError
from albert_lab.storage import writing
from albert_lab.training.trackers import Trackers

Event = dict[str, Any]

METRICS = "metrics.jsonl"
REMEDY = "put it back, or remove the folder of the run, and the run is trained again"


class MetricsLog:
    """Writer of metrics.jsonl: one JSON object per line, with `event` and `step`."""

    def __init__(self, folder: Path, on_line: Callable[[Event], None], trackers: Trackers | None = None):
        """Open the log in a run's folder; its lines also go to on_line, to show progress, and to trackers."""
        self._file = folder / METRICS
        self._on_line = on_line
        self._trackers = trackers

    def rewind(self, size: int) -> None:
        """Truncate the log to its size (bytes) at a checkpoint, so that a resumed run has the same log.

        Raises:
            DamagedFileError: lines from before the checkpoint are gone.
        """
        with self._file.open("ab") as file:
            if file.tell() < size:
                raise DamagedFileError(
                    self._file, f"has {file.tell():,} of the {size:,} bytes that it had at the last checkpoint", REMEDY
                )
            file.truncate(size)

    def take_over(self, file: Path, size: int) -> None:
        """Start with a copy of another run's log, up to its size (bytes) at the checkpoint, to continue its curve."""
        with self._file.open("wb") as own, file.open("rb") as others:
            own.write(others.read(size))

    def write(self, line: Event) -> None:
        """Append a line, and pass it on; a number that is not finite becomes null, which JSON has in its place.

        Raises:
            WriteError: the disk is full or fails.
        """
        line = {key: None if isinstance(x, float) and not math.isfinite(x) else x for key, x in line.items()}
        with writing(self._file), self._file.open("a") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
        if self._trackers:
            self._trackers.log(line)
        self._on_line(line)

    def flush(self) -> int:
        """Write all lines to disk, before a checkpoint that depends on them; return the size in bytes."""
        with self._file.open("ab") as file:
            os.fsync(file.fileno())
            return file.tell()

    def finish(self, scores: Mapping[str, float], step: int) -> None:
        """Send the final scores, after the last step, to trackers; they are not part of the log."""
        if self._trackers:
            self._trackers.log({"event": "final", "step": step, **scores})

    def close(self) -> None:
        """Wait until trackers have what they were sent."""
        if self._trackers:
            self._trackers.close()


class NoLog(MetricsLog):
    """The log of a process that is not the leader: it writes nothing."""

    def __init__(self) -> None:
        self._trackers = None

    def rewind(self, size: int) -> None:
        """Does nothing."""

    def take_over(self, file: Path, size: int) -> None:
        """Does nothing."""

    def write(self, line: Event) -> None:
        """Does nothing."""

    def flush(self) -> int:
        return 0

    def finish(self, scores: Mapping[str, float], step: int) -> None:
        """Does nothing."""
