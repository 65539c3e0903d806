"""The interface of trackers, and how one is opened. A new tracker is one module with a function `open_run`."""

import contextlib
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Protocol

from albert_lab import trackers
from albert_lab.errors import ConfigError, MissingDataError

PROJECT = "albert-lab"  # unless an environment variable of the tracker names another one
_OTHER = ("feed", "tracker")


class Tracker(Protocol):
    """A run in a tracker, under its name in albert-lab, so that a resumed run is the same one there.

    Attributes:
        last_step: the last step of which it has a point; -1 if it has none.
    """

    last_step: int

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add the point of a step, which is after all others."""

    def close(self) -> None:
        """Wait until all points are kept."""


def names() -> list[str]:
    return [module.name for module in iter_modules(trackers.__path__) if module.name not in _OTHER]


def open_run(tracker: str, run: str, folder: Path, config: Mapping[str, Any]) -> Tracker:
    """A run in a tracker, new or as it was left.

    Args:
        folder: for files of trackers that write next to a run.
        config: what determines the numbers of the run.

    Raises:
        MissingDataError: the package of the tracker is not installed.
        ConfigError: the tracker refuses; its own words.
    """
    if find_spec(tracker) is None:
        raise MissingDataError(f"the tracker {tracker} needs a package: pip install 'albert-lab[{tracker}]'")
    module = import_module(f"{trackers.__name__}.{tracker}")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            return module.open_run(run, folder, config)
    except Exception as error:  # of a package and a service that are not ours
        raise ConfigError(f"the tracker {tracker} cannot be used: {' '.join(str(error).split())}") from error
