"""Plans of epochs on disk, for large texts: one process writes a plan, and all its readers map it into memory."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import numpy as np

from albert_lab import in_use, paths, storage
from albert_lab.data.build import find_or_build
from albert_lab.data.pairs import Pairs
from albert_lab.data.shards import Shards
from albert_lab.messages import quiet

# For a smaller text, a plan takes less than 10 MB and half a second, and an epoch is short: a file does not pay off.
LARGE_TOKENS = 50_000_000
_STATS = "stats"


def is_large(shards: Shards) -> bool:
    """Whether plans of the text are kept on disk."""
    return shards.num_tokens >= LARGE_TOKENS


def find_or_make(name: str, make: Callable[[], Pairs]) -> Pairs:
    """The plan of that name, mapped from disk; makes it first if it does not exist, while other processes wait."""
    for _ in range(2):  # another process may drop it between finding and reading
        folder = find_or_build(_folder(name), lambda partial: _write(partial, make()), "the plan of an epoch", quiet)
        with suppress(FileNotFoundError):
            return _read(folder)
    return make()


def drop(name: str) -> None:
    """Removes a plan that this process no longer needs, unless another process reads it."""
    folder = _folder(name)
    in_use.unmark(folder)
    if not in_use.is_used(folder):
        storage.discard(folder)


def _folder(name: str) -> Path:
    return paths.cache() / "plans" / name


def _columns() -> list[str]:
    return [field.name for field in fields(Pairs) if field.name != _STATS]


def _write(folder: Path, pairs: Pairs) -> None:
    for column in _columns():
        np.save(folder / f"{column}.npy", getattr(pairs, column))
    (folder / f"{_STATS}.json").write_text(json.dumps(dict(pairs.stats)))


def _read(folder: Path) -> Pairs:
    columns = {column: np.load(folder / f"{column}.npy", mmap_mode="r") for column in _columns()}
    return Pairs(**columns, stats=json.loads((folder / f"{_STATS}.json").read_text()))
