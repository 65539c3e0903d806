"""What takes disk space and can be made again."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import psutil

from albert_lab import paths
from albert_lab.runs import ancestry, states


def garbage(*, cache: bool, checkpoints: bool) -> dict[Path, int]:
    """Paths that could be freed, with their sizes (bytes).

    Always: half-made data of dead processes and checkpoints of failed runs.

    Args:
        cache: also prepared text and tokenizers.
        checkpoints: also the checkpoints of finished runs, without those that an unfinished one starts from.
    """
    found = {
        path for path in paths.cache().glob("*/*.partial-*") if not psutil.pid_exists(int(path.name.split("-")[-1]))
    }
    wanted = {"failed", "done"} if checkpoints else {"failed"}
    needed = {parent for child, parent in ancestry.parents(paths.runs()).items() if _is_unfinished(child)}
    for folder in paths.runs().glob("*/"):
        if folder.name not in needed and (folder / "checkpoint").is_dir() and states.state(folder) in wanted:
            found.add(folder / "checkpoint")
    if cache:
        found |= {path for path in paths.cache().glob("*/*") if path.suffix != ".lock" and ".partial-" not in path.name}
    return {path: _size(path) for path in sorted(found)}


def _is_unfinished(name: str) -> bool:
    return states.state(paths.runs() / name) not in ("done", "failed")


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def free(found: Iterable[Path]) -> None:
    """Remove files and folders."""
    for path in found:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
