"""The log of a run during training: metrics.jsonl, whose numbers TensorBoard and Weights & Biases may receive too."""

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.storage import writing

Event = dict[str, Any]

METRICS = "metrics.jsonl"
REMEDY = "put it back, or remove the folder of the run, and the run is trained again"
PROJECT = "albert-lab"


def check_installed(trackers: Sequence[str]) -> None:
    """Raise MissingDataError for a tracker whose package is not installed."""
    for name in trackers:
        if find_spec(name) is None:
            raise MissingDataError(f"machine.report_to={name} needs a package: pip install 'albert-lab[{name}]'")


class Trackers:
    """The trackers of a run: event files in its folder `tensorboard`, or a run of W&B with the same name.

    $WANDB_PROJECT and $WANDB_MODE name the project and keep it offline. A resumed run goes on in the same place; the
    steps since its last checkpoint are sent again.
    """

    def __init__(self, trackers: Sequence[str], run: str, folder: Path, config: Mapping[str, Any]) -> None:
        """Raises ConfigError, in its own words, if a tracker refuses."""
        self._writer: Any = None
        self._wandb: Any = None
        try:
            with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
                if "tensorboard" in trackers:
                    self._writer = import_module("torch.utils.tensorboard").SummaryWriter(str(folder / "tensorboard"))
                if "wandb" in trackers:
                    project = os.environ.get("WANDB_PROJECT") or PROJECT
                    kept = {"project": project, "id": run, "name": run, "dir": folder, "resume": "allow"}
                    quiet = {"silent": True, "console": "off"}
                    self._wandb = import_module("wandb").init(config=dict(config), settings=quiet, **kept)
        except Exception as error:  # of a package and a service that are not ours
            raise ConfigError(f"machine.report_to={','.join(trackers)}: {' '.join(str(error).split())}") from error

    def log(self, line: Mapping[str, Any]) -> None:
        """Send the numbers of a line, as `EVENT/NAME` at its step."""
        numbers = {f"{line['event']}/{key}": value for key, value in line.items() if isinstance(value, int | float)}
        numbers.pop(f"{line['event']}/step")
        for name, value in numbers.items() if self._writer else ():
            self._writer.add_scalar(name, value, line["step"])
        if self._wandb:
            self._wandb.log(numbers, step=line["step"])

    def close(self) -> None:
        """Wait until all points are kept."""
        for tracker, end in ((self._writer, "close"), (self._wandb, "finish")):
            if tracker:
                getattr(tracker, end)()


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
                gone = f"has {file.tell():,} of the {size:,} bytes that it had at the last checkpoint"
                raise DamagedFileError(self._file, gone, REMEDY)
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
