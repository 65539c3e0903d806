"""What every launcher does, and what its answers mean."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

# In place of an exit code or a signal of a run's process: the run it starts from did not end well, so it had none.
PARENT_FAILED = -1000
# Its process ended and nobody knows how.
LOST = -1001
# In place of the exit code of a study: its runs continue on their own.
NOT_AWAITED = -1


class Launcher(Protocol):
    """Makes runs, each in a process of its own."""

    def __call__(
        self,
        folders: Mapping[Path, Sequence[str]],
        *,
        on_end: Callable[[Path, int], bool],
        parents: Mapping[Path, Path],
    ) -> int:
        """Make runs until none is left or on_end says stop.

        Args:
            folders: run folders in order, each with further arguments of its process: tasks to fine-tune on, seeds.
            on_end: called with a run's folder and the exit code of its process, or minus the number of the signal
                that killed it; PARENT_FAILED or LOST where there is neither. False starts no further run.
            parents: folders of runs that start from another one of these; they wait until it has ended.

        Returns:
            0, NOT_AWAITED, or why it is not complete: 130 after Ctrl-C, 75 after SIGTERM, to this process or to one of
            a run alone.
        """
        ...


def in_order(folders: Mapping[Path, Sequence[str]], parents: Mapping[Path, Path]) -> list[Path]:
    """Run folders, each behind the one it starts from, else in their order."""

    def depth(folder: Path) -> int:
        return 1 + depth(parents[folder]) if folder in parents else 0

    return sorted(folders, key=depth)
