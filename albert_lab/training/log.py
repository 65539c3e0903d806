"""The log of a run during training: metrics.jsonl."""

import os
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from albert_lab.errors import DamagedFileError
from albert_lab.files import read_bytes
from albert_lab.storage import write_atomically

Event = dict[str, Any]

METRICS = "metrics.jsonl"
REMEDY = "put it back, or remove the folder of the run, and the run is trained again"


class MetricsLog:
    """Writer of metrics.jsonl: one JSON object per line, with `event` and `step`."""

    def __init__(self, folder: Path) -> None:
        """Open the log in a run's folder."""
        self._file = folder / METRICS

    def begin(self, size: int, file: Path | None = None) -> None:
        """Begin with a log up to its size (bytes) at a checkpoint: this one, so that a resumed run
        has the same log, or that of another run, to continue its curve.

        It becomes a file of its own: another name of it, as in a backup by hard links, stays as it
        is.

        Raises:
            DamagedFileError: lines from before the checkpoint are gone, or it is no ordinary file.
        """
        file = file or self._file
        lines = read_bytes(file, REMEDY) if file.exists() else b""
        if len(lines) < size:
            gone = f"has {len(lines):,} of the {size:,} bytes that it had at the last checkpoint"
            raise DamagedFileError(file, gone, REMEDY)
        write_atomically(self._file, lines[:size])

    def write(self, line: Event) -> None:
        """Append a line; a number that is not finite becomes null, which JSON has in its place.

        Raises:
            OSError: the disk is full or fails.
        """
        with self._file.open("ab") as file:
            file.write(to_json(line, inf_nan_mode="null") + b"\n")

    def flush(self) -> int:
        """Write all lines to disk, before a checkpoint that depends on them; return the size in
        bytes.
        """
        with self._file.open("ab") as file:
            os.fsync(file.fileno())
            return file.tell()
