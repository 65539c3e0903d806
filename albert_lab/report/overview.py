"""The pages of all reports under a folder: one with a line a claim, and one for each scale and corpus."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from albert_lab.analysis import ladder
from albert_lab.analysis.agreement import total
from albert_lab.analysis.verdicts import Decision
from albert_lab.report import agreement, alarms, verdicts
from albert_lab.report.collection import Collection, Entry, read
from albert_lab.report.markdown import MISSING, as_table, escape_tags, scores_table
from albert_lab.report.report import REPORT
from albert_lab.report.templates import call, fill
from albert_lab.storage import write_atomically
from albert_lab.studies import ladder_results
from albert_lab.studies.experiment import AVERAGE

PAGE = "README.md"


def write(root: Path) -> Path:
    """Write the page of all reports under a folder, and one for each scale and corpus in its folder; return its path.

    Raises:
        ConfigError: a file of a report is missing or cannot be read.
    """
    collections = read(root)
    pages = {root / PAGE: render(collections, root)}
    for collection in collections:
        folder = _folder(collection, root)
        if folder.is_dir():
            pages[folder / PAGE] = render_one(collection, folder)
    for file, text in pages.items():
        write_atomically(file, escape_tags(text))
    return root / PAGE


def render(collections: Sequence[Collection], root: Path) -> str:
    """The text of the page of all reports: one line a claim, or a study without claims, by scale and corpus."""
    together = total(entry.analysis.comparisons for collection in collections for entry in collection.entries)
    sections = [
        {
            "heading": _heading(collection, root),
            "summary": _summary(collection),
            "claims": [line for entry in collection.entries for line in _claims(entry, root)],
            "own": [line for entry in collection.own for line in _claims(entry, root) or [_line(entry, root)]],
        }
        for collection in collections
    ]
    ladders = [_ladder(folder, root) for folder in sorted(root.glob("*/*/")) if ladder_results.holds(folder)]
    return fill("all_reports.md.j2", sections=sections, agreement=agreement.as_text(together), ladders=ladders)


def _ladder(folder: Path, root: Path) -> dict[str, object]:
    """The values of the line of a ladder: its size, and how many of its effects grow, shrink or are open."""
    analysis = ladder.analyse(ladder_results.read(folder))
    return {
        "title": analysis.results.file.experiment.title,
        "rungs": max((len(line.effects) for line in analysis.trends), default=0),
        "runs": len(analysis.results.runs),
        "trends": Counter(str(line.direction or "open") for line in analysis.trends if line.trend),
        "link": f"[{folder.name}]({_relative(folder / REPORT, root)})",
    }


def _heading(collection: Collection, root: Path) -> str:
    name, folder = f"Scale `{collection.scale}`, corpus `{collection.corpus}`", _folder(collection, root)
    return f"[{name}]({folder.name}/{PAGE})" if folder.is_dir() else name


def _folder(collection: Collection, root: Path) -> Path:
    return root / f"{collection.scale}-{collection.corpus}"


def render_one(collection: Collection, at: Path) -> str:
    """The text of the page of one scale and corpus, with the tables and figures of its reports."""
    with_reports = [(entry, entry.folder) for entry in (*collection.reported, *collection.own) if entry.folder]
    unmade = [entry.experiment.name for entry in collection.entries if not entry.folder]
    return fill(
        "reports.md.j2",
        collection=collection,
        summary=_summary(collection),
        contents=_contents(collection, at),
        entries=[_entry(entry, folder, at) for entry, folder in with_reports],
        missing={name: reason for entry, _ in with_reports for name, reason in entry.missing.items()},
        unmade=unmade if collection.reported else [],
        cost=collection.cost,
        agreement=agreement.as_text(total(entry.analysis.comparisons for entry in collection.entries)),
    )


def contents(collection: Collection) -> str:
    """The contents of a collection as a table: one experiment per line, with its claims by verdict."""
    return f"{_summary(collection)}\n\n{_contents(collection, None)}"


def _summary(collection: Collection) -> str:
    counts = {str(decision): collection.decisions[decision] for decision in Decision}
    return call("summary.md.j2", "summary", collection, counts)


def _contents(collection: Collection, at: Path | None) -> str:
    header = ["experiment", "source", "rows with runs", "seeds", "missing", *(str(decision) for decision in Decision)]
    body = []
    for entry in (*(collection.entries if collection.reported else ()), *collection.own):
        name = entry.experiment.name
        rows = entry.analysis.rows
        filled = f"{sum(bool(row.runs) for row in rows)} of {len(rows)}" if entry.folder else MISSING
        counts = [[verdict.decision for verdict in entry.analysis.verdicts].count(decision) for decision in Decision]
        line = [name if at is None else _link(name, entry, at), _source(entry), filled, str(entry.analysis.study.seeds)]
        missing = str(len(entry.missing)) if entry.folder else MISSING
        body.append([*line, missing, *map(str, counts)])
    return as_table(header, body)


def _line(entry: Entry, at: Path) -> str:
    """The line of a study without claims that were run."""
    rows, seeds = len(entry.analysis.rows), entry.analysis.study.seeds
    size = f"{rows} row{'s' if rows != 1 else ''}, {seeds} seed{'s' if seeds != 1 else ''}"
    return f"{entry.experiment.title}: {size}. {_link(entry.experiment.name, entry, at)}"


def _source(entry: Entry) -> str:
    """The tables and figures of the paper that the experiment reproduces; of a study of your own, its whole source."""
    parts = [part.strip() for part in entry.experiment.source.replace(" and Figure", ", Figure").split(",")]
    start = next((index for index, part in enumerate(parts) if part.startswith(("Table", "Figure"))), 0)
    return ", ".join(parts[start:])


def _link(text: str, entry: Entry, at: Path) -> str:
    return f"[{text}]({_relative(entry.folder / REPORT, at)})" if entry.folder else text


def _relative(file: Path, at: Path) -> str:
    return Path(os.path.relpath(file, at)).as_posix()


def _claims(entry: Entry, at: Path) -> list[str]:
    columns = entry.analysis.scores.columns
    return [
        f"{verdicts.short(verdict, columns)} {_link(entry.experiment.name, entry, at)}"
        for verdict in entry.analysis.verdicts
        if verdict.decision is not Decision.NOT_RUN
    ]


def _entry(entry: Entry, folder: Path, at: Path) -> dict[str, object]:
    """What the page shows of an experiment with a report: headline scores, claims, alarms and figures."""
    analysis = entry.analysis
    headline = [*analysis.held_out, *([column for column in analysis.tasks if column.key == AVERAGE] or analysis.tasks)]
    drawn = [name for name in entry.experiment.figures if (folder / f"{name}.svg").exists()]
    return {
        "title": _link(entry.experiment.title, entry, at),
        "source": entry.experiment.source,
        "substitutes": {own: task for own, task in analysis.scores.columns.items() if own != task},
        "claims": _claims(entry, at),
        "scores": scores_table(analysis, headline),
        "alarms": alarms.section(analysis),
        "figures": {name: _relative(folder / f"{name}.svg", at) for name in drawn},
    }
