"""The paper on one page: every table, figure and claim of the reports under a folder, as Markdown."""

import os
from collections.abc import Sequence
from pathlib import Path

from albert_lab.cost.estimate import duration
from albert_lab.report import agreement, alarms, verdicts
from albert_lab.report.claims import Decision
from albert_lab.report.collection import Chapter, Section, read
from albert_lab.report.markdown import MISSING, as_table, number, scores_table
from albert_lab.report.report import REPORT
from albert_lab.storage import write_atomically
from albert_lab.studies.experiment import AVERAGE
from albert_lab.studies.table import axes_of, fitting, intrinsic_columns, task_columns

PAGE = "README.md"
_TITLE = "# The paper on one page"
_INTRODUCTION = (
    "Every table and figure of *ALBERT* (Lan et al. 2020, arXiv 1909.11942) that was made again here, with its headline"
    " scores, and every sentence of the paper that these runs can speak of, with its verdict. Made of the CSV files in"
    " the report folders alone: `albert-lab paper` makes what is missing, `albert-lab report` with this folder writes"
    " this page again. Table 14, the fine-tuning settings, is `albert-lab table14`."
)


def write(root: Path) -> Path:
    """Write the page of all reports under a folder, and that of each scale and corpus into its folder; the path.

    Raises:
        ConfigError: a file of a report is missing or cannot be read.
    """
    with fitting(root):
        sections = read(root)
        pages = {root / PAGE: render(sections, root)}
        for section in sections:
            folder = root / f"{section.scale}-{section.corpus}"
            if folder.is_dir():
                pages[folder / PAGE] = render([section], folder)
    for file, text in pages.items():
        write_atomically(file, text)
    return root / PAGE


def render(sections: Sequence[Section], at: Path) -> str:
    """The text of a page that is written into a folder."""
    parts = [_TITLE, _INTRODUCTION, verdicts.HOW_TO_READ, verdicts.PAPERS_NOISE]
    for section in sections:
        parts += _section(section, at)
    return "\n\n".join(parts) + "\n"


def contents(section: Section) -> str:
    """What a section has, in a table: an experiment a line, with its claims by verdict."""
    return "\n\n".join([_summary(section), _contents(section, None)])


def _section(section: Section, at: Path) -> list[str]:
    parts = [f"## Scale `{section.scale}`, corpus `{section.corpus}`", _summary(section), _contents(section, at)]
    parts += ["### Claims", _claims(section, at), "### Tables and figures"]
    for chapter in section.chapters:
        parts += _chapter(chapter, chapter.folder, at) if chapter.folder else []
    parts += ["### What is missing", _missing(section), "### What it cost", _cost(section)]
    if line := agreement.as_text(agreement.total(chapter.agreement for chapter in section.chapters)):
        parts += ["### Agreement", line]
    return parts


def _missing(section: Section) -> str:
    lines = [
        f"- `{name}`: {reason}"
        for chapter in section.chapters
        if chapter.folder
        for name, reason in chapter.missing.items()
    ]
    if unmade := [f"`{chapter.experiment.name}`" for chapter in section.chapters if not chapter.folder]:
        lines.append(f"- No report of {', '.join(unmade)}: `albert-lab NAME` makes one.")
    return "\n".join(lines) or "Nothing."


def _summary(section: Section) -> str:
    reported = [chapter for chapter in section.chapters if chapter.folder]
    counts = ", ".join(f"{section.decisions[decision]} {decision}" for decision in Decision)
    return (
        f"{len(reported)} of {len(section.chapters)} experiments {'has' if len(reported) == 1 else 'have'} a report."
        f" Of {section.decisions.total()} claims: {counts}."
    )


def _contents(section: Section, at: Path | None) -> str:
    header = ["experiment", "in the paper", "rows with runs", "seeds", "missing", *(str(each) for each in Decision)]
    body = []
    for chapter in section.chapters:
        name = chapter.experiment.name
        filled = f"{sum(bool(row.runs) for row in chapter.rows)} of {len(chapter.rows)}" if chapter.folder else MISSING
        counts = [[verdict.decision for verdict in chapter.verdicts].count(decision) for decision in Decision]
        line = [name if at is None else _link(name, chapter, at), _source(chapter), filled, str(chapter.seeds)]
        missing = str(len(chapter.missing)) if chapter.folder else MISSING
        body.append([*line, missing, *map(str, counts)])
    return as_table(header, body)


def _source(chapter: Chapter) -> str:
    """The tables and figures that the experiment is of."""
    parts = [part.strip() for part in chapter.experiment.source.replace(" and Figure", ", Figure").split(",")]
    start = next(index for index, part in enumerate(parts) if part.startswith(("Table", "Figure")))
    return ", ".join(parts[start:])


def _link(text: str, chapter: Chapter, at: Path) -> str:
    return f"[{text}]({_relative(chapter.folder / REPORT, at)})" if chapter.folder else text


def _relative(file: Path, at: Path) -> str:
    return Path(os.path.relpath(file, at)).as_posix()


def _claims(section: Section, at: Path) -> str:
    header = ["verdict", "claim", "section", "experiment", "check", "effect [95 % interval]", "in the paper", "n"]
    body = []
    for chapter in section.chapters:
        columns = verdicts.filled(chapter.tunings)
        for verdict in chapter.verdicts:
            if verdict.decision is Decision.NOT_RUN:
                continue
            claim = verdict.claim
            checked = f"{verdicts.measure(verdict, columns)} {verdicts.check(verdict)}"
            effect, paper = verdicts.effect(verdict), verdicts.papers_effect(verdict)
            line = [f"**{verdict.decision}**", f"“{claim.quote}”", claim.section]
            line += [_link(chapter.experiment.name, chapter, at), checked]
            body.append([*line, "; ".join(filter(None, (effect, verdict.reason))), paper or MISSING, str(verdict.n)])
    rest = section.decisions[Decision.NOT_RUN]
    return "\n\n".join(
        [
            *([as_table(header, body)] if body else []),
            *([f"{rest} claims were not run."] if rest else []),
        ]
    )


def _chapter(chapter: Chapter, folder: Path, at: Path) -> list[str]:
    """Heading, headline scores, alarms and figures of an experiment with a report."""
    experiment = chapter.experiment
    heading = f"#### {_link(experiment.title, chapter, at)}"
    tasks = task_columns(experiment, chapter.tunings)
    headline = [*intrinsic_columns(experiment), *([c for c in tasks if c.key == AVERAGE] or tasks)]
    stand_ins = {own: task for own, task in verdicts.filled(chapter.tunings).items() if own != task}
    words = [f"{experiment.source}."]
    if stand_ins:
        filled = ", ".join(f"`{task}` for `{own}`" for own, task in stand_ins.items())
        words.append(f"Tasks of the corpus stand in for official ones and compare with no published score: {filled}.")
    axes = axes_of(experiment, chapter.points)
    parts = [heading, " ".join(words), scores_table(experiment, axes, chapter.rows, headline)]
    if raised := alarms.section(experiment, chapter.rows, chapter.tunings):
        parts.append(f"Alarms:\n\n{raised}")
    drawn = [name for name in experiment.figures if (folder / f"{name}.svg").exists()]
    return parts + [f"![{name}]({_relative(folder / f'{name}.svg', at)})" for name in drawn]


def _cost(section: Section) -> str:
    cost = section.cost
    return "\n".join(
        [
            f"- {cost.runs} runs: {number(cost.tokens)} tokens, {duration(cost.training_seconds)} of training,"
            f" {duration(cost.total_seconds)} with evaluation and checkpoints. A run that continues a trunk counts"
            " the trunk's part as its own; what is no row is not counted.",
            f"- {cost.finetunings} fine-tunings: {duration(cost.finetuning_seconds)}.",
            *(f"- On {machine}." for machine in cost.machines),
        ]
    )
