"""What became of every run that was begun."""

from pathlib import Path
from typing import Any

from tabulate import tabulate

from albert_lab.errors import DamagedFileError
from albert_lab.runs import ancestry, results, states
from albert_lab.runs import run as runs
from albert_lab.tasks.records import FOLDER


def rows(folder: Path) -> list[dict[str, Any]]:
    """One row a run folder: state, share of the budget, step, loss, fine-tunings, parent, reason of a failure.

    Oldest first, and each run below the one it starts from; depth says how far below the first.
    """
    found: dict[str, dict[str, Any]] = {}
    parents = ancestry.parents(folder)
    for path in sorted(folder.glob(f"*/{runs.RUN_FILE}"), key=lambda file: file.stat().st_mtime):
        run_folder = path.parent
        state, last, reason = _read(run_folder)
        found[run_folder.name] = {
            "run": run_folder.name,
            "state": state,
            "share": last.get("share"),
            "step": last.get("step"),
            "loss": last.get("loss"),
            "fine_tuned": sorted(file.stem for file in (run_folder / FOLDER).glob("*-seed*[0-9].json")),
            "start_from": parents.get(run_folder.name),
            "reason": reason,
        }
    return [found[name] | {"depth": depth} for name, depth in ancestry.tree(list(found), parents)]


def _read(folder: Path) -> tuple[str, dict[str, Any], str | None]:
    """State of a run, the last line of its training, and why it failed or what is damaged."""
    state = states.state(folder)
    try:
        runs.read_file(folder)
        results.check(folder)
        lines = results.read_metrics(folder)
        reason = states.failure(folder) if state == "failed" else None
    except DamagedFileError as error:
        return "damaged", {}, str(error)
    return state, next((line for line in reversed(lines) if line["event"] == "training"), {}), reason


def text(found: list[dict[str, Any]]) -> str:
    """The rows as a table, a tree in its first column, with a line of totals."""
    if not found:
        return "no runs yet"
    body = [
        [
            ancestry.branch(row["depth"]) + row["run"],
            row["state"],
            "" if row["share"] is None else f"{row['share']:.0%}",
            "" if row["step"] is None else f"{row['step']:,}",
            "" if row["loss"] is None else f"{row['loss']:.3f}",
            str(len(row["fine_tuned"]) or ""),
            row["reason"] or "",
        ]
        for row in found
    ]
    counts: dict[str, int] = {}
    for row in found:
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    table = tabulate(
        body,
        headers=["run", "state", "share", "step", "loss", "fine-tuned", ""],
        tablefmt="simple",
        disable_numparse=True,
    )
    return f"{table}\n\n" + ", ".join(f"{count} {state}" for state, count in counts.items())
