"""The terminal as a library sees it that draws tables and bars."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.segment import Segment

from albert_lab.messages import visible_lines


class PlainConsole(Console):
    """A console on which text of others is text: no markup, no emoji, and no control character of
    theirs.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # The library's own control codes move the cursor and are marked.
            yield (
                segment if segment.control else Segment(visible_lines(segment.text), segment.style)
            )


def from_here(path: Path) -> str:
    """A path as it is shown: relative to the current folder, if it is below that."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
