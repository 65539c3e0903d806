"""The main table of a report for LaTeX: a floating table in the style of booktabs, with caption,
label and footnote.
"""

import re
from pathlib import Path

from tabulate import LATEX_ESCAPE_RULES, tabulate

from albert_lab.analysis.analysis import Analysis, read
from albert_lab.messages import printable
from albert_lab.report.tables import legend, main_table
from albert_lab.report.wording import answer
from albert_lab.storage import write_atomically

FILE = "report.tex"
# Signs that TeX does not have in its usual fonts; tabulate escapes what TeX reads as commands.
_SYMBOLS = {"|": r"\textbar{}", "±": r"$\pm$", "−": "$-$", "—": "---"}
_SYMBOLS |= {"’": "'", "“": "``", "”": "''"}
_ESCAPES = str.maketrans({**LATEX_ESCAPE_RULES, **_SYMBOLS})


def write(folder: Path) -> Path:
    """Write the main table of a report into its folder; return the file.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    write_atomically(folder / FILE, table(read(folder), folder.resolve().name))
    return folder / FILE


def table(analysis: Analysis, name: str) -> str:
    main = main_table(analysis)
    align = ("left", *["right"] * (len(main.header) - 1))
    header, *body = ([printable(cell) for cell in line] for line in (main.header, *main.body))
    grid = tabulate(body, header, tablefmt="latex_booktabs", disable_numparse=True, colalign=align)
    # After the end of a line, TeX reads [ or * as an argument of that end.
    grid = re.sub(r"(\\\\\n *)(?=[\[*])", r"\1{}", grid)
    title = f"{analysis.experiment.title} {answer(analysis)}"
    caption = printable(title).translate(_ESCAPES)
    foot = legend(analysis, main).translate(_ESCAPES)
    label = re.sub(r"[^\w.:-]+", "-", name, flags=re.ASCII)
    return "\n".join(
        [
            r"% In the preamble: \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            grid.translate(str.maketrans(_SYMBOLS)),
            rf"\par\footnotesize {foot}",
            r"\end{table}",
            "",
        ]
    )
