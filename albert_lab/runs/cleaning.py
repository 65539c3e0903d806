"""Files that take disk space and can be recreated."""

from collections.abc import Collection, Iterable
from pathlib import Path

from albert_lab import locks, paths, storage
from albert_lab.errors import DamagedFileError
from albert_lab.runs import run, states
from albert_lab.storage import PARTIAL


def find_garbage(*, cache: bool, checkpoints: bool) -> dict[Path, int]:
    """Paths that could be freed, with their sizes (bytes).

    Always includes half-made data of dead processes and checkpoints of failed runs.

    Args:
        cache: also prepared text and tokenizers.
        checkpoints: also the checkpoints of finished runs, except those that an unfinished run starts from.
    """
    half_made = (*paths.cache().glob(f"*/*{PARTIAL}*"), *paths.runs().glob(f"*/*checkpoint{PARTIAL}*"))
    garbage = {path for path in half_made if not _is_being_made(path)}
    wanted: tuple[states.State, ...] = ("failed", "done") if checkpoints else ("failed",)
    needed = {parent for child, parent in states.parents(paths.runs()).items() if _is_unfinished(child)}
    for folder in paths.runs().glob("*/") if not locks.is_used(paths.runs()) else ():
        if folder.name not in needed and (folder / "checkpoint").is_dir() and _is_free(folder, wanted):
            garbage.add(folder / "checkpoint")
    if cache:
        garbage |= {path for path in _cached() if not locks.is_used(path)}
    return {path: _size(path) for path in sorted(garbage)}


def find_used(*, cache: bool, checkpoints: bool) -> list[Path]:
    used = [path for path in _cached() if locks.is_used(path)] if cache else []
    return [*used, *([paths.runs()] if checkpoints and locks.is_used(paths.runs()) else [])]


def _cached() -> list[Path]:
    return [path for path in paths.cache().glob("*/*") if not locks.is_lock(path) and not storage.completed(path)]


def _is_being_made(partial: Path) -> bool:
    """Whether a process holds the lock under which a half-made folder is made or removed."""
    whole = storage.completed(partial)
    assert whole
    return locks.is_locked(whole.with_name(whole.name + locks.SUFFIX)) or run.is_locked(whole.parent)


def _is_free(folder: Path, wanted: Collection[states.State]) -> bool:
    """Whether a run is in one of these states, and no process or job works on it; False if that cannot be read."""
    try:
        return states.state(folder) in wanted and not states.taken(folder)
    except DamagedFileError:
        return False


def _is_unfinished(name: str) -> bool:
    return not _is_free(paths.runs() / name, ("done", "failed"))


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def free(garbage: Iterable[Path]) -> None:
    """Remove files and folders; if the process is killed, none is left half removed under its name."""
    for path in garbage:
        storage.remove(path) if storage.completed(path) else storage.discard(path)
