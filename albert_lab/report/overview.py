"""The paper on one page: every table, figure and claim of the reports under a folder, as Markdown."""

import os
from collections.abc import Sequence
from pathlib import Path

from albert_lab.cost.estimate import duration
from albert_lab.report import agreement, alarms, verdicts
from albert_lab.report.claims import Decision
from albert_lab.report.collection import Collection, Entry, read
from albert_lab.report.markdown import MISSING, as_table, escape_tags, number, scores_table
from albert_lab.report.report import REPORT
from albert_lab.storage import write_atomically
from albert_lab.studies.experiment import AVERAGE
from albert_lab.studies.table import intrinsic_columns, task_columns

PAGE = "README.md"
_TITLE = "# The paper on one page"
_INTRODUCTION = (
    "Every table and figure of *ALBERT* (Lan et al. 2020, arXiv 1909.11942) that was reproduced here, with its headline"
    " scores, and every claim of the paper that these runs can test, with its verdict. Made from the records in the"
    " report folders alone: `albert-lab paper` makes what is missing, and `albert-lab report` with {folder} rebuilds"
    " this page. Table 14, the fine-tuning settings, is `albert-lab table14`."
)


def write(root: Path) -> Path:
    """Write the page of all reports under a folder, and one for each scale and corpus in its folder; return its path.

    Raises:
        ConfigError: a file of a report is missing or cannot be read.
    """
    collections = read(root)
    pages = {root / PAGE: render(collections, root, root)}
    for collection in collections:
        folder = root / f"{collection.scale}-{collection.corpus}"
        if folder.is_dir():
            pages[folder / PAGE] = render([collection], folder, root)
    for file, text in pages.items():
        write_atomically(file, escape_tags(text))
    return root / PAGE


def render(collections: Sequence[Collection], at: Path, root: Path) -> str:
    """The text of the page in a folder, which is the root of the reports or a folder of them."""
    introduction = _INTRODUCTION.format(folder="this folder" if at == root else "the folder above this one")
    parts = [_TITLE, introduction, verdicts.HOW_TO_READ, verdicts.PAPERS_NOISE]
    for collection in collections:
        parts += _section(collection, at)
    return "\n\n".join(parts) + "\n"


def contents(collection: Collection) -> str:
    """The contents of a collection as a table: one experiment per line, with its claims by verdict."""
    return "\n\n".join([_summary(collection), _contents(collection, None)])


def _section(collection: Collection, at: Path) -> list[str]:
    parts = [
        f"## Scale `{collection.scale}`, corpus `{collection.corpus}`",
        _summary(collection),
        _contents(collection, at),
    ]
    parts += ["### Claims", _claims(collection, at), "### Tables and figures"]
    for entry in collection.entries:
        parts += _entry(entry, entry.folder, at) if entry.folder else []
    parts += ["### What is missing", _missing(collection), "### What it cost", _cost(collection)]
    if line := agreement.as_text(agreement.total(entry.agreement for entry in collection.entries)):
        parts += ["### Agreement", line]
    return parts


def _missing(collection: Collection) -> str:
    lines = [
        f"- `{name}`: {reason}"
        for entry in collection.entries
        if entry.folder
        for name, reason in entry.missing.items()
    ]
    if unmade := [f"`{entry.experiment.name}`" for entry in collection.entries if not entry.folder]:
        lines.append(f"- No report of {', '.join(unmade)}: `albert-lab NAME` makes one.")
    return "\n".join(lines) or "Nothing."


def _summary(collection: Collection) -> str:
    reported = [entry for entry in collection.entries if entry.folder]
    counts = ", ".join(f"{collection.decisions[decision]} {decision}" for decision in Decision)
    return (
        f"{len(reported)} of {len(collection.entries)} experiments {'has' if len(reported) == 1 else 'have'} a report."
        f" Of {collection.decisions.total()} claims: {counts}."
    )


def _contents(collection: Collection, at: Path | None) -> str:
    header = ["experiment", "in the paper", "rows with runs", "seeds", "missing", *(str(each) for each in Decision)]
    body = []
    for entry in collection.entries:
        name = entry.experiment.name
        filled = f"{sum(bool(row.runs) for row in entry.rows)} of {len(entry.rows)}" if entry.folder else MISSING
        counts = [[verdict.decision for verdict in entry.verdicts].count(decision) for decision in Decision]
        line = [name if at is None else _link(name, entry, at), _source(entry), filled, str(entry.seeds)]
        missing = str(len(entry.missing)) if entry.folder else MISSING
        body.append([*line, missing, *map(str, counts)])
    return as_table(header, body)


def _source(entry: Entry) -> str:
    """The tables and figures of the paper that the experiment reproduces; of a study of your own, its whole source."""
    parts = [part.strip() for part in entry.experiment.source.replace(" and Figure", ", Figure").split(",")]
    start = next((index for index, part in enumerate(parts) if part.startswith(("Table", "Figure"))), 0)
    return ", ".join(parts[start:])


def _link(text: str, entry: Entry, at: Path) -> str:
    return f"[{text}]({_relative(entry.folder / REPORT, at)})" if entry.folder else text


def _relative(file: Path, at: Path) -> str:
    return Path(os.path.relpath(file, at)).as_posix()


def _claims(collection: Collection, at: Path) -> str:
    header = ["verdict", "claim", "section", "experiment", "check", "effect [95 % interval]", "in the paper", "n"]
    body = []
    for entry in collection.entries:
        columns = verdicts.filled(entry.rows)
        for verdict in entry.verdicts:
            if verdict.decision is Decision.NOT_RUN:
                continue
            claim = verdict.claim
            checked = f"{verdicts.measure(verdict, columns)} {verdicts.check(verdict)}"
            effect, paper = verdicts.effect(verdict), verdicts.papers_effect(verdict)
            line = [f"**{verdict.decision}**", f"“{claim.quote}”", claim.section]
            line += [_link(entry.experiment.name, entry, at), checked]
            body.append([*line, "; ".join(filter(None, (effect, verdict.reason))), paper or MISSING, str(verdict.n)])
    rest = collection.decisions[Decision.NOT_RUN]
    return "\n\n".join(
        [
            *([as_table(header, body)] if body else []),
            *([f"{rest} claims were not run."] if rest else []),
        ]
    )


def _entry(entry: Entry, folder: Path, at: Path) -> list[str]:
    """Heading, headline scores, alarms and figures of an experiment with a report."""
    experiment = entry.experiment
    heading = f"#### {_link(experiment.title, entry, at)}"
    tasks = task_columns(experiment, entry.rows)
    headline = [*intrinsic_columns(experiment), *([c for c in tasks if c.key == AVERAGE] or tasks)]
    stand_ins = {own: task for own, task in verdicts.filled(entry.rows).items() if own != task}
    words = [f"{experiment.source}."]
    if stand_ins:
        filled = ", ".join(f"`{task}` for `{own}`" for own, task in stand_ins.items())
        words.append(f"Tasks of the corpus stand in for official ones and compare with no published score: {filled}.")
    axes = entry.study.axes if entry.study else []
    parts = [heading, " ".join(words), scores_table(experiment, axes, entry.rows, headline)]
    if raised := alarms.section(experiment, entry.rows):
        parts.append(f"Alarms:\n\n{raised}")
    drawn = [name for name in experiment.figures if (folder / f"{name}.svg").exists()]
    return parts + [f"![{name}]({_relative(folder / f'{name}.svg', at)})" for name in drawn]


def _cost(collection: Collection) -> str:
    cost = collection.cost
    return "\n".join(
        [
            f"- {cost.runs} runs: {number(cost.tokens)} tokens, {duration(cost.training_seconds)} of training,"
            f" {duration(cost.total_seconds)} with evaluation and checkpoints. A run that continues a trunk counts"
            " the trunk's part as its own; runs that are not rows are not counted.",
            f"- {cost.finetunings} fine-tunings: {duration(cost.finetuning_seconds)}.",
            *(f"- On {machine}." for machine in cost.machines),
        ]
    )
