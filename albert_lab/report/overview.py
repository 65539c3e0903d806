"""The pages of all reports under a folder: one with a line a claim, and one for each scale and corpus."""

import os
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path

from albert_lab.analysis.agreement import total
from albert_lab.analysis.decisions import Decision, Verdict
from albert_lab.report import agreement, verdicts
from albert_lab.report.collection import OUTCOMES, Collection, Entry, outcomes, read
from albert_lab.report.markdown import MISSING, as_table, escape_tags
from albert_lab.report.report import REPORT
from albert_lab.report.templates import call, fill
from albert_lab.storage import write_atomically
from albert_lab.studies.table import RowNames

PAGE = "README.md"
_TITLE = 30  # characters of the title of an own study


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
    """The text of the page of all reports: the agreement, a line a claim by table of the paper, a line a report."""
    entries = [entry for collection in collections for entry in collection.entries]
    folders = [folder for collection in collections if (folder := _folder(collection, root)).is_dir()]
    counted = [entry for collection in collections for entry in collection.counted]
    verdicts_run = [verdict for entry in entries for verdict in entry.analysis.verdicts if verdict.n_of == "seed"]
    usual = Counter(verdict.n for verdict in verdicts_run if verdict.n).most_common(1)
    usual_seeds = usual[0][0] if usual else None
    return fill(
        "all_reports.md.j2",
        agreement=agreement.as_text(total(entry.analysis.comparisons for entry in counted)),
        outcomes=outcomes(counted),
        tables=_tables(entries, root, _source, usual_seeds),
        usual_seeds=usual_seeds,
        own=[_line(entry, root) for collection in collections for entry in collection.own],
        pages=[f"[{folder.name}]({folder.name}/{PAGE})" for folder in folders],
    )


def _tables(
    entries: Sequence[Entry], at: Path, name: Callable[[Entry], str], usual_seeds: int | None = None
) -> list[dict[str, object]]:
    """The experiments with reports: the name and title of each, its reports, and a line for each claim.

    A line leaves out the usual number of seeds, which the page gives once.
    """
    of_name: dict[str, list[Entry]] = {}
    for entry in entries:
        of_name.setdefault(entry.experiment.name, []).extend([entry] if entry.folder else [])
    return [
        {
            "name": name(same[0]),
            "title": same[0].experiment.title,
            "links": [_link(_variant(entry), entry, at) for entry in same],
            "claims": _claims(same, at, usual_seeds),
        }
        for same in of_name.values()
        if same
    ]


def _claims(entries: Sequence[Entry], at: Path, usual_seeds: int | None) -> list[str]:
    """A line for each claim of an experiment that was run, with all reports of the experiment."""
    name = RowNames(entries[0].experiment, [row for entry in entries for row in entry.analysis.rows])
    tests: dict[str, list[tuple[Entry, Verdict]]] = {}
    for entry in entries:
        for verdict in entry.analysis.verdicts:
            if verdict.decision is not Decision.NOT_RUN:
                tests.setdefault(verdicts.tested(verdict, entry.analysis, name), []).append((entry, verdict))
    return [_claim(words, found, at, usual_seeds) for words, found in tests.items()]


def _claim(words: str, tests: Sequence[tuple[Entry, Verdict]], at: Path, usual_seeds: int | None) -> str:
    of_decision = {
        decision: [test for test in tests if test[1].decision is decision]
        for decision in dict.fromkeys(verdict.decision for _, verdict in tests)
    }
    results = [
        {
            "decision": str(decision),
            "links": [_link(_variant(entry), entry, at) for entry, _ in same],
            "effects": verdicts.effects([verdict for _, verdict in same]),
        }
        for decision, same in of_decision.items()
    ]
    found = [verdict for _, verdict in tests]
    numbers = sorted({verdict.n for verdict in found})
    is_usual = numbers == [usual_seeds] and found[0].n_of == "seed"
    amount = "" if is_usual else f"{' or '.join(map(str, numbers))} {found[0].n_of}s"
    not_above = [floors for verdict in found if (floors := verdicts.floors(verdict))]
    return call("claim.md.j2", "line", words, results, amount, not_above, len(tests))


def _folder(collection: Collection, root: Path) -> Path:
    return root / f"{collection.scale}-{collection.corpus}"


def render_one(collection: Collection, at: Path) -> str:
    """The text of the page of one scale and corpus: its reports, a line a claim, what is missing, and the cost."""
    with_reports = [entry for entry in (*collection.reported, *collection.own) if entry.folder]
    unmade = [entry.experiment.name for entry in collection.entries if not entry.folder]
    return fill(
        "reports.md.j2",
        collection=collection,
        contents=contents(collection, at),
        tables=_tables(collection.entries, at, _source) + _tables(collection.own, at, attrgetter("experiment.name")),
        missing={name: reason for entry in with_reports for name, reason in entry.missing.items()},
        unmade=unmade if collection.reported else [],
        cost=collection.cost,
        agreement=agreement.as_text(total(entry.analysis.comparisons for entry in collection.counted)),
    )


def contents(collection: Collection, at: Path | None = None) -> str:
    """How many claims of a collection are decided, and a table with one experiment per line, linked from a folder."""
    header = ["experiment", "source", "rows with runs", "seeds", "missing runs or fine-tunings", "tasks without scores"]
    header += OUTCOMES
    body = []
    for entry in (*(collection.reported if at or not collection.reported else collection.entries), *collection.own):
        name = entry.experiment.name
        rows = entry.analysis.rows
        filled = f"{sum(bool(row.runs) for row in rows)} of {len(rows)}" if entry.folder else MISSING
        shown = _with_parts(name, entry)
        line = [
            shown if at is None else _link(shown, entry, at),
            _source(entry),
            filled,
            str(entry.analysis.study.seeds),
        ]
        tasks = len(entry.experiment.tasks)
        line.append(str(len(entry.missing_runs)) if entry.folder else MISSING)
        line.append(f"{len(entry.unscored_tasks)} of {tasks}" if entry.folder and tasks else MISSING)
        body.append([*line, *map(str, outcomes([entry]).values())])
    summary = call("summary.md.j2", "summary", collection, outcomes(collection.counted))
    return f"{summary}\n\n{as_table(header, body)}"


def _line(entry: Entry, at: Path) -> str:
    """The line of an own study: the beginning of its title, and its claims by verdict."""
    link = _link(f"{_place(entry)}/{entry.experiment.name}", entry, at)
    title = textwrap.shorten(entry.experiment.title, _TITLE, placeholder=" …")
    return call("claim.md.j2", "own", link, title, entry.analysis.study.seeds, outcomes([entry]))


def _source(entry: Entry) -> str:
    """The tables and figures of the paper that the experiment reproduces; of a study of your own, its whole source."""
    parts = [part.strip() for part in entry.experiment.source.replace(" and Figure", ", Figure").split(",")]
    start = next((index for index, part in enumerate(parts) if part.startswith(("Table", "Figure"))), 0)
    return ", ".join(parts[start:])


def _link(text: str, entry: Entry, at: Path) -> str:
    return f"[{text}]({_relative(entry.folder / REPORT, at)})" if entry.folder else text


def _variant(entry: Entry) -> str:
    return _with_parts(_place(entry), entry)


def _with_parts(name: str, entry: Entry) -> str:
    """The name of a report; one of a table of the paper with what its runs have of own code."""
    return f"{name} with {', '.join(entry.own_parts)}" if entry.own_parts and entry.experiment.is_of_paper else name


def _place(entry: Entry) -> str:
    return entry.folder.parent.name if entry.folder else ""


def _relative(file: Path, at: Path) -> str:
    return Path(os.path.relpath(file, at)).as_posix()
