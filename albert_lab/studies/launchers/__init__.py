"""What starts the processes that make runs: one interface, and a module for each option of conf/launcher/."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

PARENT_FAILED = -1000  # no exit code and no signal of a process


class Launcher(Protocol):
    """A module that makes runs."""

    def launch(
        self,
        folders: Mapping[Path, Sequence[str]],
        *,
        jobs: int,
        on_end: Callable[[Path, int], bool],
        parents: Mapping[Path, Path],
    ) -> int:
        """Make runs, each in a process of its own, until none is left or on_end says stop.

        Args:
            folders: run folders in order, each with what its process is told besides: tasks to fine-tune on, seeds.
            jobs: number of processes at once on this machine.
            on_end: called with a run's folder and the exit code of its process, or minus the number of the signal
                that killed it; False starts no further run. With PARENT_FAILED where there was no process, because the
                run it starts from did not end well.
            parents: folders of runs that start from another one of these; they wait until it has ended.

        Returns:
            0, or why it is not complete: 130 after Ctrl-C, 75 after SIGTERM, to this process or one of a run alone.
        """
        ...


def choose(name: str) -> Launcher:
    """The launcher that an option of conf/launcher/ stands for."""
    return cast(Launcher, import_module(f"{__name__}.{name.replace('-', '_')}"))
