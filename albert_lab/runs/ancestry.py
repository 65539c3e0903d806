"""The tree of the runs in a folder: which run starts from which, and whether a run still has weights."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_lab import files
from albert_lab.errors import DamagedFileError
from albert_lab.runs.run import RUN_FILE


def has_weights(folder: Path) -> bool:
    """Whether other runs can start from a run: its last checkpoint was not freed."""
    return any((folder / "checkpoint").glob("step-" + "[0-9]" * 8))


def parents(folder: Path) -> dict[str, str]:
    """Parent of each run under a folder that starts from another one, by name; a damaged run.yaml names none."""
    parent_of = {}
    for file in folder.glob(f"*/{RUN_FILE}"):
        try:
            # As plain data: a run of an earlier version, with other keys, is in the tree too.
            start_from: Any = files.read_yaml(file).get("start_from")
        except DamagedFileError:
            continue
        if isinstance(start_from, dict) and "run" in start_from:
            parent_of[file.parent.name] = str(start_from["run"])
    return parent_of


def tree(names: Sequence[str], parent_of: Mapping[str, str]) -> list[tuple[str, int]]:
    """Names with their depth in the tree: each below its parent, siblings in the order given."""
    children: dict[str | None, list[str]] = {}
    for name in names:
        parent = parent_of.get(name)
        children.setdefault(parent if parent in set(names) else None, []).append(name)

    def below(name: str | None, depth: int) -> Iterable[tuple[str, int]]:
        for child in children.get(name, []):
            yield child, depth
            yield from below(child, depth + 1)

    return list(below(None, 0))


def branch(depth: int) -> str:
    """The prefix of a name at a depth of the tree; without leading spaces, which tables would cut off."""
    return "└" + "──" * depth + " " if depth else ""
