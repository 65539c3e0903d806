"""The folder of published reports and its scoreboard: a line a claim of the paper, and other
reports below.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tabulate import tabulate

from albert_lab import paths
from albert_lab.analysis.analysis import Analysis, analyse
from albert_lab.analysis.sentences import Found, Sentence, of_encoders, reports, sentences
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.figures import claims, drawing
from albert_lab.figures.claims import COLUMNS, ClaimRow, Mark
from albert_lab.report import report, wording
from albert_lab.report.markdown import listed, plain
from albert_lab.report.wording import Words
from albert_lab.storage import write_atomically
from albert_lab.studies import study as studies
from albert_lab.studies.claims import Kind
from albert_lab.studies.study import EXPERIMENT, Study

PAGE = "README.md"
PICTURE = "claims.png"
TITLE = "# What holds of the paper"
OF_ENCODERS = "Asked of a trained encoder"
FIRST_CLEANED = 4  # the results version whose training text lacks what repeats held-out text
UNCLEANED = r" \*"
HOW_TO_READ = (
    "A line is a claim of the paper, at the largest scale that can tell it; verdicts of other "
    "scales stand behind it if they differ.",
    "By loss: on held-out text. By tasks: the first one that counts, being above random weights "
    "and words alone.",
    "After the verdict: what was measured, with its 95 % interval over seeds and held-out "
    "documents. A difference above 0 is as the claim says, unless it is asked to be elsewhere.",
    "Too wide to tell: the interval is wider than the paper's effect, or than what is asked.",
    "Undecided beside an interval that leaves out 0: p-values are corrected for the number of "
    "claims of a table.",
    "Sizes in claims (E = 768) are the paper's; a report says which of its own stand for them. "
    "Those of a trained encoder are its own (E = 384 is its E = H).",
    f"{UNCLEANED.strip()} Trained on text that still had paragraphs which repeat held-out text.",
)
ON_PERFORMANCE = (Kind.LOSS, Kind.TASKS)
ON_NUMBERS = (Kind.NUMBER,)


def write(root: Path) -> Path:
    """Write the scoreboard of the reports below a folder into it; return its path.

    Raises:
        ConfigError: a file of a report is missing or cannot be read, or a README.md there is
            another page.
    """
    page = _page(root)
    write_atomically(page, render(reports(root), root))
    return page


def _page(root: Path) -> Path:
    """The path of the scoreboard; ConfigError if another page is there."""
    page = root / PAGE
    if page.exists() and not (
        page.is_file() and page.read_text(errors="replace").startswith(TITLE)
    ):
        remedy = "move it, or publish elsewhere: ALBERT_LAB_PUBLISHED names the folder"
        raise ConfigError(f"{page} is no scoreboard, and would be overwritten: {remedy}")
    return page


def publish(folder: Path, root: Path) -> Path:
    """Write a report below a folder of published reports, as `<root>/<scale>-<corpus>/<name>`;
    return its report.md.

    One of a trained encoder has `-from-<encoder>` after the corpus: it is not to be read beside
    tables from scratch.

    What a former publication wrote is replaced, and no other file is touched.

    Raises:
        ConfigError: not a report, a file in it or in another report there cannot be read, the
            folder has a README.md that is no scoreboard, or something is in the way.
    """
    _page(root)
    study = studies.read(folder)
    target = root / _place(study) / folder.resolve().name
    if target.is_symlink():
        raise ConfigError(
            f"{target} is a link, and a report is published into a folder of its own: remove it"
        )
    # A damaged report there is found before anything is written.
    for file in root.glob(f"*/*/{EXPERIMENT}"):
        if file.parent != target:
            studies.read(file.parent)
    written = report.write(target, analyse(study, target))
    # After that, since its rows say how far those of other reports vary.
    write(root)
    return written


def _place(study: Study) -> str:
    """The folder of the published reports that may be read beside each other."""
    place = f"{study.scale}-{study.corpus}"
    return f"{place}-from-{study.experiment.start_from}" if study.is_of_encoder else place


def holds_reports(root: Path) -> bool:
    """Whether a folder is not a report and has reports two levels below it."""
    return not (root / EXPERIMENT).exists() and any(root.glob(f"*/*/{EXPERIMENT}"))


def render(found: Mapping[Path, Analysis], root: Path) -> str:
    """The text of the scoreboard: claims of the paper by loss and by tasks, other numbers, and
    other reports.
    """
    lines = sentences(found)
    encoder_lines = of_encoders(found)
    above = {item.folder for line in (*lines, *encoder_lines) for item in line.by.values()}
    other = [
        f"{_link(folder, analysis, root)}: {plain(analysis.experiment.title)} "
        f"{plain(wording.answer(analysis))}"
        for folder, analysis in found.items()
        if folder not in above and analysis.study.axes
    ]
    parts = [
        TITLE,
        wording.of_sentences(lines),
        f"![The paper's claims and what we measured]({PICTURE})"
        if (root / PICTURE).is_file()
        else "",
        listed([text for text in (_sizes(found), *HOW_TO_READ) if text]),
        "## On performance",
        _table(lines, ON_PERFORMANCE, root),
        "## On sizes, speeds and layers",
        _table(lines, ON_NUMBERS, root),
        *(_of_encoders(encoder_lines, root) if encoder_lines else []),
        "## Other reports" if other else "",
        listed(other),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _sizes(found: Mapping[Path, Analysis]) -> str:
    """The sizes of the models that are trained from scratch: a NO is about these."""
    sizes = [
        record.parameters["total"]
        for analysis in found.values()
        if not analysis.study.is_of_encoder
        for record in analysis.records
        if record.config.scale.name != "paper"
    ]
    if not sizes:
        return ""
    smallest, largest = (f"{number / 1e6:.2g}" for number in (min(sizes), max(sizes)))
    return f"A verdict is about models of {smallest} to {largest} million parameters."


def _of_encoders(lines: Sequence[Sentence], root: Path) -> list[str]:
    kinds = [kind for kind in Kind if any(kind in line.kinds for line in lines)]
    return [
        f"## {OF_ENCODERS}",
        "Nothing here is trained from scratch: rows start from the weights of a trained encoder, "
        f"which is another question than the paper's. {wording.of_sentences(lines, whose='')}",
        _table(lines, kinds, root),
    ]


def _table(lines: Sequence[Sentence], kinds: Sequence[Kind], root: Path) -> str:
    """The claims that are asked by some kinds of evidence, with a column for each of these."""
    asked = [line for line in lines if {*line.kinds} & {*kinds}]
    header = ["claim", "where", *(wording.KINDS[kind] for kind in kinds)]
    table = [header, ["---"] * len(header)]
    for line in asked:
        cells = [plain(wording.short(line.claim)), line.where]
        said = wording.words_of(line)
        for kind in kinds:
            cells.append(_cell(said[kind], line.by.get(kind), root) if kind in said else "")
        table.append(cells)
    # tabulate would pad all cells to the widest, which is a hundred times as wide as most.
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table)


def _cell(words: Words, found: Found | None, root: Path) -> str:
    """A verdict, what was measured, and its report; then the verdicts of others that differ."""
    cell = f"**{words.word}**: {plain(words.brief)}"
    if found:
        cell += f" ({_link(found.folder, found.analysis, root)})"
        for other in found.elsewhere:
            word = wording.WORDS[other.verdict.outcome]
            cell += f"; {word} in {_link(other.folder, other.analysis, root)}"
    return cell


def draw(root: Path, out: Path) -> list[Path]:
    """Draw the claims of the paper with what the reports below a folder say of them, as PNG and
    SVG.

    Raises:
        MissingDataError: no report there asks a claim of the paper.
    """
    found = reports(root)
    lines = sentences(found)
    if not any(line.by for line in lines):
        remedy = (
            f"`albert-lab sop-vs-nsp` makes one, and `albert-lab plot claims {paths.reports()}` "
            "draws it"
        )
        raise MissingDataError(f"no report in {root} tests a sentence of the paper: {remedy}")
    draw = partial(claims.claims, drawn(found), wording.of_sentences(lines))
    return drawing.write(draw, out, "claims")


def drawn(found: Mapping[Path, Analysis]) -> list[ClaimRow]:
    """The rows of the picture: claims of the paper, then those asked of a trained encoder."""
    group = f"{OF_ENCODERS}: another question than the paper's"
    of_encoder = [replace(row, group=group) for row in picture(of_encoders(found))]
    return [*picture(sentences(found)), *of_encoder]


def picture(lines: Sequence[Sentence]) -> list[ClaimRow]:
    """The rows of claims; a number that is neither of loss nor of tasks stands in the first
    column.
    """
    rows = []
    by_loss, by_tasks = COLUMNS
    for line in lines:
        marks = {}
        for kind, words in wording.words_of(line).items():
            column = by_tasks if kind is Kind.TASKS else by_loss
            marks[column] = Mark(words.word, words.number)
        rows.append(ClaimRow(line.where, wording.short(line.claim), marks))
    return rows


def as_data(lines: Sequence[Sentence]) -> list[dict[str, Any]]:
    """Claims as plain data: the verdicts by loss, by tasks and by number, as far as a report has
    them; unknown numbers are null.
    """
    content = []
    for line in lines:
        by = {
            kind: {"report": str(item.folder), "verdict": item.verdict}
            for kind, item in line.by.items()
        }
        content.append({"claim": wording.short(line.claim), "by": by})
    return report.with_null(content)


def as_text(lines: Sequence[Sentence]) -> str:
    """Claims for a terminal: how many hold, and the verdict and number of those that a report
    asks.
    """
    rows = []
    for row in picture(lines):
        marks = [row.marks.get(column) for column in COLUMNS]
        words = [mark.word if mark else "" for mark in marks]
        number = next((mark.number for mark in marks if mark and mark.number), "")
        rows.append([*words, row.claim, number])
    header = [*COLUMNS, "claim", "measured"]
    table = tabulate(rows, header, tablefmt="plain", disable_numparse=True)
    return f"{wording.of_sentences(lines)}\n\n{table}"


def _link(folder: Path, analysis: Analysis, root: Path) -> str:
    """The link to a report, with a mark if its runs used own code, or text before it was
    cleaned.
    """
    path = Path(os.path.relpath(folder / report.REPORT, root)).as_posix()
    mark = f" (own code: {plain(', '.join(analysis.own_code))})" if analysis.own_code else ""
    if any(record.results_version < FIRST_CLEANED for record in analysis.records):
        mark += UNCLEANED
    return f"[{plain(f'{folder.parent.name}/{folder.name}')}]({quote(path)}){mark}"
