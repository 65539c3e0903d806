"""Golden files: the exact expected texts."""

import os
from pathlib import Path


def assert_golden(text: str, file: Path) -> None:
    """Fail if a text differs from the file; with ALBERT_LAB_GOLDEN=write, write the file."""
    if os.environ.get("ALBERT_LAB_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    golden = file.read_text() if file.exists() else None
    assert text == golden, f"{file.name} is missing or another: `make golden` writes it, and git shows what moved"
