"""The state of every run that was started."""

from pathlib import Path
from typing import Any

from tabulate import tabulate

from albert_lab.errors import DamagedFileError
from albert_lab.runs import ancestry, job, results, states
from albert_lab.runs import run as runs
from albert_lab.tasks.records import FOLDER


def rows(folder: Path) -> list[dict[str, Any]]:
    """One row per run folder: state, share of the budget, step, loss, fine-tunings, parent, job, node, reason.

    The reason is why it failed, why it waits, or how its job ended if it ended before the run.

    Oldest first, and each run below its parent; depth is the number of its ancestors.
    """
    found: dict[str, dict[str, Any]] = {}
    parents = ancestry.parents(folder)
    for path in sorted(folder.glob(f"*/{runs.RUN_FILE}"), key=lambda file: file.stat().st_mtime):
        run_folder = path.parent
        state, last, reason, at = _read(run_folder)
        found[run_folder.name] = {
            "run": run_folder.name,
            "state": state,
            "share": last.get("share"),
            "step": last.get("step"),
            "loss": last.get("loss"),
            "fine_tuned": sorted(file.stem for file in (run_folder / FOLDER).glob("*-seed*[0-9].json")),
            "start_from": parents.get(run_folder.name),
            "job": at["job"],
            "node": at["node"],
            "reason": reason or at["place"],
        }
    return [found[name] | {"depth": depth} for name, depth in ancestry.tree(list(found), parents)]


def _read(folder: Path) -> tuple[str, dict[str, Any], str | None, dict[str, Any]]:
    """State of a run, its last training line, the reason of failure or damage, and its job in the queue."""
    nowhere: dict[str, Any] = {"job": None, "node": None, "place": None}
    try:
        state = states.state(folder)
        at = job.as_columns(folder) if state in states.TAKEN else nowhere
        runs.read_file(folder)
        results.check(folder)
        lines = results.read_metrics(folder)
        reason = states.failure(folder) if state == "failed" else None
        if state in ("stopped", "missing"):
            reason = job.died(folder)
    except DamagedFileError as error:
        return "damaged", {}, str(error), nowhere
    return state, next((line for line in reversed(lines) if line["event"] == "training"), {}), reason, at


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
