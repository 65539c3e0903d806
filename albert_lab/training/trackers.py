"""Trackers: TensorBoard and Weights & Biases get the numbers of a run's log while it trains."""

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from albert_lab.errors import ConfigError, MissingDataError

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
