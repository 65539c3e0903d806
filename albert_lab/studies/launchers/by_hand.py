"""Runs as printed command lines for any other way to start them; comments give their order and dependencies."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from albert_lab.config.launcher import ByHandLauncher
from albert_lab.runs import preparing
from albert_lab.studies.launchers.base import NOT_AWAITED, in_order, worker


def launch(
    folders: Mapping[Path, Sequence[str]],
    *,
    settings: ByHandLauncher,
    on_end: Callable[[Path, int], bool],
    parents: Mapping[Path, Path],
) -> int:
    """Print one line per run on stdout; nothing is started, and on_end is not called."""
    del on_end
    if settings.preparation == "job" and (lacking := preparing.lacking(folders)):
        print("# first, and alone:")
        print(shlex.join(preparing.command(lacking)))
    for folder in in_order(folders, parents):
        if folder in parents:
            print(f"# after the line of {parents[folder].name}:")
        print(shlex.join(worker(folder, folders[folder])), flush=True)
    return NOT_AWAITED
