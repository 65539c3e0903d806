"""The log of a run during training: metrics.jsonl and, optionally, TensorBoard."""

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
            MissingDataError: TensorBoard is requested but not installed.
        """
        self._file = folder / METRICS
        self._on_line = on_line
        self._board = _tensorboard_writer(folder) if tensorboard else None

    def rewind(self, size: int) -> None:
        """Truncate the log to its size (bytes) at a checkpoint, so that a resumed run has the same log."""
        with self._file.open("ab") as file:
            file.truncate(size)

    def take_over(self, file: Path, size: int) -> None:
        """Start with a copy of another run's log, up to its size (bytes) at the checkpoint, to continue its curve."""
        with self._file.open("wb") as own, file.open("rb") as others:
            own.write(others.read(size))

    def write(self, line: Event) -> None:
        """Append a line, and pass it to on_line to show progress.

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
        """Write all lines to disk, before a checkpoint that depends on them; return the size in bytes."""
        with self._file.open("ab") as file:
            os.fsync(file.fileno())
            size = file.tell()
        if self._board:
            self._board.flush()
        return size


class NoLog(MetricsLog):
    """The log of a process that is not the leader: it writes nothing."""

    def __init__(self) -> None:
        self._board = None

    def rewind(self, size: int) -> None:
        """Does nothing."""

    def take_over(self, file: Path, size: int) -> None:
        """Does nothing."""

    def write(self, line: Event) -> None:
        """Does nothing."""

    def flush(self) -> int:
        """Returns 0 bytes."""
        return 0


def _tensorboard_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDataError(
            "machine.tensorboard=true needs TensorBoard: pip install 'albert-lab[tensorboard]'"
        ) from error
    return SummaryWriter(str(folder / "tensorboard"))
