"""The experiment files that come with the package, in the paper's order, without the cost of parsing YAML."""

import re
from pathlib import Path

from albert_lab import paths


def in_order() -> list[Path]:
    """The files by table of the paper, then those that are only a figure."""
    return sorted(paths.EXPERIMENTS.glob("*.yaml"), key=_place)


def line(file: Path, key: str) -> str:
    """The value of a key that is a line of an experiment file; empty if there is none."""
    for text in file.read_text(encoding="utf-8").splitlines():
        if text.startswith(f"{key}:"):
            return text.removeprefix(f"{key}:").strip().strip("\"'")
    return ""


def _place(file: Path) -> tuple[bool, int, str]:
    table, figure = (re.search(rf"{kind}s? (\d+)", line(file, "source")) for kind in ("Table", "Figure"))
    number = table or figure
    return table is None, int(number.group(1)) if number else 0, file.stem
