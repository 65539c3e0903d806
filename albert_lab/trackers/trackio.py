"""Trackio: local, or in a Space of the Hugging Face Hub ($TRACKIO_SPACE_ID). $TRACKIO_PROJECT names the project."""

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from albert_lab.trackers.tracker import PROJECT


class Trackio:
    """A run of Trackio."""

    def __init__(self, run: Any):
        self._run = run
        self.last_step = run._next_step - 1  # no public function has it, wherever the points are kept

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


def open_run(run: str, folder: Path, config: Mapping[str, Any]) -> Trackio:
    trackio: Any = import_module("trackio")
    project = os.environ.get("TRACKIO_PROJECT") or PROJECT
    settings = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
    return Trackio(trackio.init(project, name=run, config=dict(config), resume="allow", **settings))
