"""The git commit of the running code, if it runs from a checkout."""

import os
import subprocess
from functools import cache
from pathlib import Path

from albert_lab import paths

# The suffix of a commit with uncommitted changes, as in `git describe --dirty`.
DIRTY = "-dirty"
_SECONDS = 10
# git sets these in its hooks, for the repository of the hook.
_OF_ANOTHER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


@cache
def of_code() -> str | None:
    """The commit that this program was imported from; read once, since files may change later."""
    return of(paths.PACKAGE, paths.CONF, paths.EXPERIMENTS)


def of(package: Path, *others: Path) -> str | None:
    """The commit of the checkout in which a package is tracked, 40 hex digits.

    DIRTY is appended if the package or one of the other folders has a changed or new file. None if git fails or there
    is no checkout, as for an installed package.
    """
    # The second one fails for a package that is only installed below some checkout.
    ids = _git(package, "rev-parse", "HEAD", "HEAD:./__init__.py")
    changes = None if ids is None else _git(package, "status", "--porcelain", "--", ".", *map(str, others))
    if ids is None or changes is None:
        return None
    return ids.split()[0] + (DIRTY if changes else "")


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {key: value for key, value in os.environ.items() if key not in _OF_ANOTHER}
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):  # git is not installed, or the disk does not answer
        return None
    return None if done.returncode else done.stdout
