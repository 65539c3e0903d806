"""The state of runs."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from albert_lab import paths
from albert_lab.cli.options import STUDIES, Json, shown
from albert_lab.errors import DamagedFileError
from albert_lab.messages import duration, printable, to_stdout, visible

app = typer.Typer()
_STUDY = (
    "Only the runs of this study: its name, or the folder of its report, which exists before its "
    "first run."
)

# Numbers of the last line of a log, and how `status` shows them: share of the budget, losses in
# nats.
_OF_LINE: dict[str, Callable[[Any], str]] = {
    "share": "{:.0%}".format,
    "step": "{:,}".format,
    "tokens_per_second": "{:,.0f}".format,
    "mlm_loss": "{:.3f}".format,
    "pair_loss": "{:.3f}".format,
    "seconds_left": duration,
}


@app.command(**shown(STUDIES, "albert-lab status", "albert-lab status sop-vs-nsp"))
def status(
    study: Annotated[
        Path | None, typer.Argument(metavar="[STUDY]", file_okay=False, help=_STUDY)
    ] = None,
    as_json: Json = False,
) -> None:
    """List all runs, or those of a study, with their progress: rate, losses and time left."""
    from albert_lab.studies.study import places_of_runs, read_points

    places = places_of_runs(paths.reports())
    files = sorted(paths.runs().glob("*/run.yaml"), key=lambda file: file.stat().st_mtime)
    folders = [file.parent for file in files]
    if study is not None:
        reports = [*paths.reports().glob(f"*/{study}")] or [study]
        names = {point.run for report in reports for point in read_points(report).points}
        folders = [folder for folder in folders if folder.name in names]
    listed = [row_of(folder, *places.get(folder.name, ())) for folder in folders]
    listed.sort(key=lambda row: row["report"])
    to_stdout(json.dumps(listed, indent=2) if as_json else as_text(listed))


def row_of(folder: Path, report: str = "", title: str = "") -> dict[str, Any]:
    """A run: a report that has it, its title (its row and seed there), its name, its state, numbers
    of its last logged step, its fine-tunings, and why it failed.
    """
    from albert_lab.runs import results, states
    from albert_lab.runs.run import FAILURE, failure_in
    from albert_lab.tasks.records import FOLDER

    state = states.state(folder)
    lines = []
    reason = ""
    try:
        lines = results.read_metrics(folder)
        reason = failure_in(folder / FAILURE) if state == "failed" else ""
    except DamagedFileError as error:
        state = "damaged"
        reason = str(error)
    last = next((line for line in reversed(lines) if line["event"] == "training"), {})
    row = {
        "report": report,
        "title": title or folder.name.rpartition("_")[0],
        "run": folder.name,
        "state": state,
    }
    row |= {key: last.get(key) for key in _OF_LINE}
    if state != "running":
        row |= {"tokens_per_second": None, "seconds_left": None}
    tuned = sorted(file.stem for file in (folder / FOLDER).glob("*-seed*[0-9].json"))
    return row | {"fine_tuned": tuned, "reason": reason}


def as_text(listed: list[dict[str, Any]]) -> str:
    """Rows by report as a table of the columns that have anything, why runs failed, and the number
    of runs in each state.

    A run has the end of its name, which other commands take in place of the name.
    """
    from tabulate import tabulate

    if not listed:
        return "no runs yet"
    shown = [_cells(row) for row in listed]
    used = [key for key in shown[0] if any(cells[key] for cells in shown)]
    by_report: dict[str, list[list[str]]] = {}
    for row, cells in zip(listed, shown, strict=True):
        by_report.setdefault(row["report"], []).append([cells[key] for key in used])
    lines = []
    for report, rows in by_report.items():
        lines += [[f"{printable(report) or 'in no table'}:"], *rows]
    table = tabulate(lines, used, tablefmt="simple", disable_numparse=True)
    reasons = "".join(
        f"{printable(row['title'])}: {visible(row['reason'])}\n" for row in listed if row["reason"]
    )
    counts = Counter(row["state"] for row in listed)
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    return f"{table}\n\n{reasons}{states}, in {paths.runs()}"


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """The texts of a row by column, empty where it has nothing."""
    cells = {
        "title": printable(row["title"]),
        "run": row["run"].rpartition("_")[2],
        "state": row["state"],
    }
    for key, form in _OF_LINE.items():
        cells[key] = "" if row[key] is None else form(row[key])
    return cells | {"fine_tuned": str(len(row["fine_tuned"]) or "")}
