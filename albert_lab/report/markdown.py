"""A report as Markdown, in five sections. Text of records and experiments is escaped wherever it
stands.
"""

import re
from collections.abc import Iterable, Mapping

from tabulate import tabulate

from albert_lab.analysis.analysis import Analysis
from albert_lab.messages import printable
from albert_lab.report import notes, tables, wording
from albert_lab.report.tables import Table
from albert_lab.report.wording import KINDS, Words
from albert_lab.studies.claims import BaseClaim, Kind

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&!$])")


def plain(text: str) -> str:
    """Text as Markdown that shows it as it is, on one line: no link, tag, picture or table is made
    of it.
    """
    return _SPECIAL.sub(r"\\\1", printable(text))


def code(text: str) -> str:
    """Text as code on one line, whatever is in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " * bool(longest)
    return f"{fence}{space}{printable(text)}{space}{fence}"


def as_table(table: Table) -> str:
    """A table in Markdown; empty for one without lines."""
    if not table.body:
        return ""
    body = [[plain(cell) for cell in line] for line in table.body]
    align = ["left", *["right"] * (len(table.header) - 1)]
    # Numbers are text: 81.30 must not become 81.3.
    return tabulate(
        body,
        headers=[*map(plain, table.header)],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=align,
    )


def folded(summary: str, *parts: str) -> str:
    """Parts that a click opens; the only HTML of a report, a tag a line. Empty if all parts are."""
    shown = [part for part in parts if part]
    return (
        "\n\n".join([f"<details><summary>{summary}</summary>", *shown, "</details>"])
        if shown
        else ""
    )


def listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def render(analysis: Analysis, picture: tuple[str, str] | None) -> str:
    """The text of a report.

    Args:
        picture: the name of the file of the figure beside it, and its title; None without one.
    """
    experiment = analysis.experiment
    study = analysis.study
    main = tables.main_table(analysis)
    others = [tables.tasks_table(analysis), *tables.other_tables(analysis)]
    commands = dict.fromkeys(point.command for point in study.points)
    counted = plain(wording.claims_counted(analysis))
    if len(experiment.claims) > 1:
        counted += " p-values are corrected for their number."
    stands = wording.sizes(analysis)
    sizes = f"; {stands}" if stands else ""
    parts = [
        f"# {plain(experiment.title)}",
        f"**{plain(wording.answer(analysis))}** {counted}",
        plain(f"{experiment.source}; scale {study.scale}, corpus {study.corpus}{sizes}."),
        listed([claim_line(claim, said) for claim, said in wording.claims_of(analysis)]),
        f"![{plain(picture[1])}]({picture[0]})" if picture else "",
        "## Results",
        as_table(main),
        plain(tables.legend(analysis, main)),
        folded("Other measures", *map(as_table, others)),
        "## What to know",
        listed(map(plain, notes.first(analysis))),
        folded("More on these numbers", listed(map(plain, notes.others(analysis)))),
        folded("How this study was made", listed(map(_note, experiment.notes))),
        "## Provenance",
        listed([f"Command: {code(command)}" for command in commands]),
        listed(map(plain, notes.provenance(analysis))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def claim_line(claim: BaseClaim, said: Mapping[Kind, Words]) -> str:
    """A claim with its verdict by each kind of evidence, and what was measured."""
    verdicts = ", ".join(f"**{words.word}** {KINDS[kind]}" for kind, words in said.items())
    evidence = []
    for kind, words in said.items():
        heading = f"{KINDS[kind].capitalize()}: " if len(said) > 1 else ""
        evidence.append(f"{heading}{plain(words.evidence)}")
    quote = f"“{plain(claim.quote)}”"
    if not claim.short:
        return f"{verdicts}: {quote} {'. '.join(evidence)}"
    return f"{verdicts}: **{plain(claim.short)}**. {'. '.join(evidence)}. {quote}"


def _note(text: str) -> str:
    """A note of an experiment, which may have code between backticks."""
    return "".join(
        code(part) if number % 2 else plain(part) for number, part in enumerate(text.split("`"))
    )
