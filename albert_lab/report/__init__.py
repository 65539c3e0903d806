"""Reports: the frame of a study as one page of Markdown and HTML, as LaTeX, and beside other reports."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from albert_lab.analysis.frame import Frame


def report_of(path: "str | Path") -> "Frame":
    """The numbers of the report in a folder as tidy pandas tables: see analysis/frame.py.

    Raises:
        ConfigError: the folder is no report of a study, or a file in it cannot be read.
    """
    from albert_lab.analysis.frame import frame
    from albert_lab.paths import expanded
    from albert_lab.studies import study

    return frame(study.read(expanded(str(path))))


class _Package(ModuleType):
    """This package, which can also be called: importing it sets the attribute `report` of albert_lab to it."""

    def __call__(self, path: "str | Path") -> "Frame":
        return report_of(path)


sys.modules[__name__].__class__ = _Package
