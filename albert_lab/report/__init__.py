"""Reports: tables, statistics and verdicts as Markdown and as a page."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from albert_lab.studies.frames import Report


class _Package(ModuleType):
    """This package, which can also be called: importing it sets the attribute `report` of albert_lab to it."""

    def __call__(self, path: "str | Path") -> "Report":
        """The numbers of a report as pandas frames: see studies/frames.py."""
        from albert_lab.studies.frames import Report

        return Report(path)


sys.modules[__name__].__class__ = _Package
