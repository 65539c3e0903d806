"""Reports: the frame of a study as one page of Markdown and HTML, and beside other reports."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it loads pandas
    from albert_lab.analysis.frame import Frame


def read_report(path: "str | Path") -> "Frame":
    """The numbers of the report in a folder as tidy pandas tables: see analysis/frame.py.

    Raises:
        ConfigError: the folder is no report of a study, or a file in it cannot be read.
    """
    from albert_lab.analysis.analysis import read
    from albert_lab.paths import expanded

    return read(expanded(str(path))).frame
