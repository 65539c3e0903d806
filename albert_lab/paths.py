"""Paths of the configuration and experiment files, and of the output of commands."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def _shipped(name: str) -> Path:
    """A folder that is inside the package in a wheel, and next to it in a checkout."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent / name


CONF = _shipped("conf")
EXPERIMENTS = _shipped("experiments")


def home() -> Path:
    """Folder below which commands write: $ALBERT_LAB_HOME, else lab/ in the current folder."""
    return Path(os.environ.get("ALBERT_LAB_HOME") or "lab").expanduser().absolute()


def runs() -> Path:
    """Folder with one sub-folder per run."""
    return home() / "runs"


def reports() -> Path:
    """Folder of the written reports: $ALBERT_LAB_REPORTS, else reports/ in home()."""
    return Path(os.environ.get("ALBERT_LAB_REPORTS") or home() / "reports").expanduser().absolute()


def published() -> Path:
    """Folder of published reports: $ALBERT_LAB_PUBLISHED, else reports/ in the current folder."""
    return Path(os.environ.get("ALBERT_LAB_PUBLISHED") or "reports").expanduser().absolute()


def figures() -> Path:
    """Folder of figures that do not belong to a report."""
    return home() / "figures"


def tasks_data() -> Path:
    """Folder of the downstream tasks' data (glue, squad, race): $ALBERT_LAB_TASKS, else data/ in home()."""
    return Path(os.environ.get("ALBERT_LAB_TASKS") or home() / "data").expanduser().absolute()


def cache() -> Path:
    """Folder of token shards and tokenizers: $ALBERT_LAB_CACHE, else cache/ in home()."""
    return Path(os.environ.get("ALBERT_LAB_CACHE") or home() / "cache").expanduser().absolute()
