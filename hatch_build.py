"""Writes the commit of the checkout into what is built of it: an installed wheel has no .git."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    """Adds albert_lab/COMMIT; a source distribution has it already, and no .git, and an editable
    installation is in a checkout.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        is_checkout = (Path(self.root) / ".git").exists() and shutil.which("git")
        if version == "editable" or not is_checkout:
            return
        describe = ["git", "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty"]
        commit = subprocess.run(describe, cwd=self.root, capture_output=True, check=False).stdout
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(commit)
        build_data["force_include"][file.name] = "albert_lab/COMMIT"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        for file, place in build_data["force_include"].items():
            if place == "albert_lab/COMMIT":
                Path(file).unlink()
