"""The interface of launchers, and the meaning of their return values."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

# In place of the exit code of a run's process: it was not started, because the run's parent did not finish.
PARENT_FAILED = -1000
# In place of the exit code of a run's process: the process ended, but its exit code is unknown.
LOST = -1001
# In place of the exit code of a study: its runs continue on their own.
NOT_AWAITED = -1


class Launcher(Protocol):
    """Trains runs, each in a separate process."""

    def __call__(
        self,
        folders: Mapping[Path, Sequence[str]],
        *,
        on_end: Callable[[Path, int], bool],
        parents: Mapping[Path, Path],
    ) -> int:
        """Train runs until none is left or on_end says stop.

        Args:
            folders: run folders in order, each with further arguments of its process: tasks to fine-tune on, seeds.
            on_end: called with a run's folder and the exit code of its process, or minus the number of the signal
                that killed it, or PARENT_FAILED or LOST. If it returns False, no further run is started.
            parents: folders of runs that start from another one of these; they wait until it has ended.

        Returns:
            0, NOT_AWAITED, or the code of an incomplete study: 130 after Ctrl-C, 75 after SIGTERM, sent to this process
            or only to that of a run.
        """
        ...


def worker(folder: Path, arguments: Sequence[str]) -> list[str]:
    """The command line of the process that trains a run."""
    return [sys.executable, "-m", "albert_lab.runs.worker", str(folder), *arguments]


def tasks_in(arguments: Sequence[str]) -> list[str]:
    """The tasks among the arguments of a run's process, which come first."""
    options = [index for index, text in enumerate(arguments) if text.startswith("--")]
    return list(arguments[: options[0]] if options else arguments)


def in_order(folders: Mapping[Path, Sequence[str]], parents: Mapping[Path, Path]) -> list[Path]:
    """Run folders, each after its parent, otherwise in their order."""

    def depth(folder: Path) -> int:
        return 1 + depth(parents[folder]) if folder in parents else 0

    return sorted(folders, key=depth)
