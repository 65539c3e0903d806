"""The tables of a report for LaTeX: each a floating table in the style of booktabs, with its heading as caption."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from albert_lab.figures.files import NONE_DRAWN
from albert_lab.report import report
from albert_lab.storage import write_atomically

FILE = "report.tex"
_ESCAPES = {char: f"\\{char}" for char in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "[": "{[}",  # an option of the end of the line before it, if a row begins with it
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "†": r"\textsuperscript{\dag}",
    "‡": r"\textsuperscript{\ddag}",
    "—": "---",
    "–": "--",
    "−": "$-$",
    "√": r"$\surd$",
    "·": r"$\cdot$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "“": "``",
    "”": "''",
    "’": "'",
}
_ESCAPED = re.compile("|".join(map(re.escape, _ESCAPES)))


def write(folder: Path) -> Path:
    """Write the tables of a report into its folder; return their file.

    Raises:
        ConfigError: a file of the report is missing or cannot be read.
    """
    write_atomically(folder / FILE, tables(report.render(report.read(folder), NONE_DRAWN)))
    return folder / FILE


def tables(text: str) -> str:
    parts = [r"% Tables of a report. In the preamble: \usepackage{booktabs}"]
    heading, start = "", 0
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = _text(tokens[place + 1])
        elif token.type == "table_open":
            start = place
        elif token.type == "table_close":
            parts.append(_table(heading, tokens[start:place]))
    return "\n\n".join(parts) + "\n"


def _table(heading: str, tokens: Sequence[Token]) -> str:
    rows: list[list[str]] = []
    columns = ""
    for before, token in pairwise(tokens):
        if before.type == "tr_open":
            rows.append([])
        if token.type == "inline":
            rows[-1].append(_text(token))
        if before.type == "th_open":
            columns += "r" if "right" in str(before.attrs.get("style")) else "l"
    header, *body = [" & ".join(cells) + r" \\" for cells in rows]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{heading}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        header,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _text(inline: Token) -> str:
    """The text of a cell or heading, with code in typewriter and strong text in bold."""
    styles = {"strong_open": r"\textbf{", "em_open": r"\emph{", "strong_close": "}", "em_close": "}"}
    latex = ""
    for token in inline.children or []:
        text = _ESCAPED.sub(lambda match: _ESCAPES[match[0]], token.content)
        latex += styles.get(token.type, rf"\texttt{{{text}}}" if token.type == "code_inline" else text)
    return latex
