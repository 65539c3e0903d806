"""The log of a run during training: metrics.jsonl, whose numbers TensorBoard and Weights & Biases
may receive too.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.files import read_bytes
from albert_lab.storage import write_atomically

Event = dict[str, Any]

METRICS = "metrics.jsonl"
REMEDY = "put it back, or remove the folder of the run, and the run is trained again"


def check_installed(trackers: Sequence[str]) -> None:
    """Raise MissingDataError for a tracker whose package is not installed."""
    for name in trackers:
        if find_spec(name) is None:
            raise MissingDataError(
                f"machine.report_to={name} needs a package: pip install -e '.[{name}]'"
            )


@contextmanager
def tracked(
    trackers: Sequence[str], run: str, folder: Path, config: Mapping[str, Any]
) -> Iterator[Callable[[Event], None]]:
    """A function that sends the numbers of a line, as `EVENT/NAME` at its step, to the trackers of
    a run.

    They are event files in its folder `tensorboard`, and a run of W&B with the same name:
    $WANDB_PROJECT and $WANDB_MODE name the project and keep it offline. A resumed run goes on in
    the same place; the steps since its last checkpoint are sent again.

    Raises:
        ConfigError: in its own words, if a tracker refuses.
    """
    writer: Any = None
    wandb: Any = None
    with ExitStack() as stack:
        try:
            with redirect_stdout(sys.stderr):  # stdout is for results
                if "tensorboard" in trackers:
                    to_files = import_module("torch.utils.tensorboard").SummaryWriter
                    writer = stack.enter_context(to_files(str(folder / "tensorboard")))
                if "wandb" in trackers:
                    opened = import_module("wandb").init(
                        project=os.environ.get("WANDB_PROJECT") or "albert-lab",
                        id=run,
                        name=run,
                        dir=folder,
                        config=dict(config),
                        resume="allow",
                        settings={"silent": True, "console": "off"},
                    )
                    wandb = stack.enter_context(opened)
        except Exception as error:  # of a package and a service that are not ours
            raise ConfigError(
                f"machine.report_to={','.join(trackers)}: {' '.join(str(error).split())}"
            ) from error

        def send(line: Event) -> None:
            event, step = line["event"], line["step"]
            numbers = {
                f"{event}/{key}": x
                for key, x in line.items()
                if key != "step" and isinstance(x, int | float)
            }
            if writer:
                for name, value in numbers.items():
                    writer.add_scalar(name, value, step)
            if wandb:
                wandb.log(numbers, step=step)

        yield send


def _until(file: Path, size: int) -> bytes:
    """The first bytes of a log, those at a checkpoint.

    Raises:
        DamagedFileError: it has fewer.
    """
    lines = read_bytes(file, REMEDY) if file.exists() else b""
    if len(lines) < size:
        gone = f"has {len(lines):,} of the {size:,} bytes that it had at the last checkpoint"
        raise DamagedFileError(file, gone, REMEDY)
    return lines[:size]


class MetricsLog:
    """Writer of metrics.jsonl: one JSON object per line, with `event` and `step`."""

    def __init__(self, folder: Path, *listeners: Callable[[Event], None]) -> None:
        """Open the log in a run's folder; its lines also go to the listeners: progress, and
        trackers.
        """
        self._file, self._listeners = folder / METRICS, listeners

    def rewind(self, size: int) -> None:
        """Truncate the log to its size (bytes) at a checkpoint, so that a resumed run has the same
        log.

        It becomes a file of its own: another name of it, as in a backup by hard links, stays as it
        is.

        Raises:
            DamagedFileError: lines from before the checkpoint are gone, or it is no ordinary file.
        """
        write_atomically(self._file, _until(self._file, size))

    def take_over(self, file: Path, size: int) -> None:
        """Start with a copy of another run's log, up to its size (bytes) at the checkpoint, to
        continue its curve.

        Raises:
            DamagedFileError: lines of the other log from before its checkpoint are gone.
        """
        write_atomically(self._file, _until(file, size))

    def write(self, line: Event) -> None:
        """Append a line, and pass it on; a number that is not finite becomes null, which JSON has
        in its place.

        Raises:
            OSError: the disk is full or fails.
        """
        line = {
            key: None if isinstance(x, float) and not math.isfinite(x) else x
            for key, x in line.items()
        }
        with self._file.open("a") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
        for listener in self._listeners:
            listener(line)

    def flush(self) -> int:
        """Write all lines to disk, before a checkpoint that depends on them; return the size in
        bytes.
        """
        with self._file.open("ab") as file:
            os.fsync(file.fileno())
            return file.tell()
