"""The log of a run during training: metrics.jsonl, and TensorBoard if asked for."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_lab.errors import MissingDataError
from albert_lab.storage import writing

Event = dict[str, Any]

METRICS = "metrics.jsonl"


class MetricsLog:
    """Writer of metrics.jsonl: one JSON object per line, with `event` and `step`."""

    def __init__(self, folder: Path, on_line: Callable[[Event], None], *, tensorboard: bool = False):
        """Open the log in a run's folder.

        Raises:
            MissingDataError: TensorBoard is asked for but not installed.
        """
        self._file = folder / METRICS
        self._on_line = on_line
        self._board = _tensorboard_writer(folder) if tensorboard else None

    def rewind(self, size: int) -> None:
        """Cut the log to its size (bytes) at a checkpoint: a resumed run then logs what an uninterrupted one does."""
        with self._file.open("ab") as file:
            file.truncate(size)

    def take_over(self, file: Path, size: int) -> None:
        """Start with another run's log, up to its size (bytes) at its checkpoint, to continue its curve."""
        with self._file.open("wb") as own, file.open("rb") as others:
            own.write(others.read(size))

    def write(self, line: Event) -> None:
        """Append a line, and pass it on to show progress.

        Raises:
            WriteError: the disk is full or fails.
        """
        with writing(self._file), self._file.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if self._board:
            for key, value in line.items():
                if isinstance(value, int | float) and key != "step":
                    self._board.add_scalar(f"{line['event']}/{key}", value, line["step"])
        self._on_line(line)

    def flush(self) -> int:
        """Force everything written so far to disk, before a checkpoint that depends on it; its size in bytes."""
        with self._file.open("ab") as file:
            os.fsync(file.fileno())
            size = file.tell()
        if self._board:
            self._board.flush()
        return size


class NoLog(MetricsLog):
    """The log of a process that does not lead: it leaves nothing behind."""

    def __init__(self) -> None:
        self._board = None

    def rewind(self, size: int) -> None:
        """Nothing to cut."""

    def take_over(self, file: Path, size: int) -> None:
        """Nothing to begin with."""

    def write(self, line: Event) -> None:
        """Nothing is written."""

    def flush(self) -> int:
        """No bytes."""
        return 0


def _tensorboard_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDataError(
            "machine.tensorboard=true needs TensorBoard: pip install 'albert-lab[tensorboard]'"
        ) from error
    return SummaryWriter(str(folder / "tensorboard"))
