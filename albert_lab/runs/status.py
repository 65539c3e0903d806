"""The state of every run that was started, once or again and again."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.text import Text
from tabulate import tabulate

from albert_lab.errors import DamagedFileError
from albert_lab.messages import duration
from albert_lab.runs import queue, results, states
from albert_lab.runs import run as runs
from albert_lab.tasks.records import FOLDER

WATCH_SECONDS, STOP_SECONDS = 2.0, 0.1

# Of the last line of the log: share of the budget, step, rate, losses in nats, seconds of pre-training that are left.
_OF_LINE = ("share", "step", "tokens_per_second", "loss", "mlm_loss", "pair_loss", "seconds_left")
HEADINGS = ("run", "state", "share", "step", "tokens/s", "loss", "MLM", "pairs", "left", "fine-tuned", "")


def rows(
    folder: Path, names: Collection[str] | None = None, titles: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """One row per run folder: state, numbers of its last logged step, fine-tunings, parent, job, node, reason.

    The reason is why it failed, why it waits, or how its job ended if it ended before the run. names: only these runs.
    titles: the row and seed of runs in studies, by name. Oldest first.
    """
    listed: list[dict[str, Any]] = []
    parents = states.parents(folder)
    for path in sorted(folder.glob(f"*/{runs.RUN_FILE}"), key=lambda file: file.stat().st_mtime):
        run_folder = path.parent
        if names is not None and run_folder.name not in names:
            continue
        state, last, reason, at = _read(run_folder)
        row = {
            "run": run_folder.name,
            "title": (titles or {}).get(run_folder.name, runs.title_of(run_folder.name)),
            "state": state,
            **{key: last.get(key) for key in _OF_LINE},
            "fine_tuned": sorted(file.stem for file in (run_folder / FOLDER).glob("*-seed*[0-9].json")),
            "start_from": parents.get(run_folder.name),
            "job": at["job"],
            "node": at["node"],
            "reason": reason or at["place"],
        }
        listed.append(row)
    of_title = Counter(row["title"] for row in listed)
    for row in listed:  # runs that differ in more than their titles say
        row["title"] += f" {row['run'][-4:]}" * (of_title[row["title"]] > 1)
    return listed


def _read(folder: Path) -> tuple[str, dict[str, Any], str | None, dict[str, Any]]:
    """State of a run, its last training line, the reason of failure or damage, and its job in the queue."""
    nowhere: dict[str, Any] = {"job": None, "node": None, "place": None}
    try:
        state = states.state(folder)
        at = queue.as_columns(folder) if state in ("running", "queued") else nowhere
        runs.read_file(folder)
        results.check(folder)
        lines = results.read_metrics(folder)
        reason = states.failure(folder) if state == "failed" else None
        if state in ("stopped", "missing"):
            reason = queue.last_words(folder)
    except DamagedFileError as error:
        return "damaged", {}, str(error), nowhere
    return state, next((line for line in reversed(lines) if line["event"] == "training"), {}), reason, at


def text(listed: list[dict[str, Any]]) -> str:
    if not listed:
        return "no runs yet"
    columns = [column for column in zip(HEADINGS, *map(cells, listed), strict=True) if any(column[1:])]  # to fit
    head, *body = zip(*columns, strict=True)
    table = tabulate(body, headers=head, tablefmt="simple", disable_numparse=True)
    counts = Counter(row["state"] for row in listed)
    return f"{table}\n\n{', '.join(f'{count} {state}' for state, count in counts.items())}"


def cells(row: dict[str, Any]) -> list[str]:
    """A row as texts below HEADINGS; only a run that trains has a rate and a time left."""

    def number(key: str, form: str) -> str:
        return "" if row[key] is None else format(row[key], form)

    trains = row["state"] == "running"
    return [
        row["title"],
        row["state"],
        number("share", ".0%"),
        number("step", ","),
        number("tokens_per_second", ",.0f") if trains else "",
        *(number(key, ".3f") for key in ("loss", "mlm_loss", "pair_loss")),
        duration(row["seconds_left"]) if trains and row["seconds_left"] is not None else "",
        str(len(row["fine_tuned"]) or ""),
        row["reason"] or "",
    ]


def watch(
    folder: Path,
    names: Collection[str] | None,
    is_stopped: Callable[[], bool],
    titles: Mapping[str, str] | None = None,
) -> None:
    """Show the rows of runs on the terminal, again every two seconds, until stopped or until all those named are done.

    They are read anew from the folders of runs, whoever trains them.
    """
    with Live(auto_refresh=False) as live:
        while True:
            listed = rows(folder, names, titles)
            to_come = len(names or listed) - len(listed)
            left = f", {to_come} to come" if to_come else ""
            live.update(Text(text(listed) + left, no_wrap=True, overflow="ellipsis"), refresh=True)
            if names is not None and not to_come and all(row["state"] in states.PRETRAINED for row in listed):
                return
            for _ in range(round(WATCH_SECONDS / STOP_SECONDS)):
                if is_stopped():
                    return
                time.sleep(STOP_SECONDS)
