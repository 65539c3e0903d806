"""What there is of all runs: a table of their states, once or again and again, and disk space that can be freed."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.text import Text
from tabulate import tabulate

from albert_lab import paths, storage
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.messages import duration
from albert_lab.runs import results, states
from albert_lab.runs.run import RUN_FILE, is_locked, read, title_of
from albert_lab.storage import LOCK, PARTIAL
from albert_lab.tasks.records import FOLDER

WATCH_SECONDS, STOP_SECONDS = 2.0, 0.1
# Headings of what the last line of the log has: share of the budget, step, rate, losses in nats, seconds that are left.
_OF_LINE: dict[str, tuple[str, Callable[[Any], str]]] = {
    "share": ("share", "{:.0%}".format),
    "step": ("step", "{:,}".format),
    "tokens/s": ("tokens_per_second", "{:,.0f}".format),
    "loss": ("loss", "{:.3f}".format),
    "MLM": ("mlm_loss", "{:.3f}".format),
    "pairs": ("pair_loss", "{:.3f}".format),
    "left": ("seconds_left", duration),
}
_WHILE_RUNNING = ("tokens_per_second", "seconds_left")


def rows(
    folder: Path, names: Collection[str] | None = None, titles: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """One row per run folder: state, numbers of its last logged step, fine-tunings, and why it failed or where it is.

    names: only these runs. titles: the row and seed of runs in studies, by name. Oldest first.
    """
    files = sorted(folder.glob(f"*/{RUN_FILE}"), key=lambda file: file.stat().st_mtime)
    folders = [file.parent for file in files if names is None or file.parent.name in names]
    listed = [_row(folder, (titles or {}).get(folder.name, title_of(folder.name))) for folder in folders]
    of_title = Counter(row["title"] for row in listed)
    for row in listed:  # runs that differ in more than their titles say
        row["title"] += f" {row['run'][-4:]}" * (of_title[row["title"]] > 1)
    return listed


def _row(folder: Path, title: str) -> dict[str, Any]:
    try:
        state, lines = states.state(folder), results.read_metrics(folder)
        reason = states.failure(folder) if state == "failed" else str(states.queued(folder) or "")
    except DamagedFileError as error:
        state, lines, reason = "damaged", [], str(error)
    last = next((line for line in reversed(lines) if line["event"] == "training"), {})
    hidden = () if state == "running" else _WHILE_RUNNING
    numbers = {key: None if key in hidden else last.get(key) for key, _ in _OF_LINE.values()}
    tuned = sorted(file.stem for file in (folder / FOLDER).glob("*-seed*[0-9].json"))
    return {"run": folder.name, "title": title, "state": state, **numbers, "fine_tuned": tuned, "reason": reason}


def text(listed: list[dict[str, Any]]) -> str:
    """Rows as a table, and the number of runs in each state."""
    if not listed:
        return "no runs yet"
    headings = ["run", "state", *_OF_LINE, "fine-tuned", ""]
    columns = [column for column in zip(headings, *map(cells, listed), strict=True) if any(column[1:])]  # to fit
    head, *body = zip(*columns, strict=True)
    table = tabulate(body, headers=head, tablefmt="simple", disable_numparse=True)
    counts = Counter(row["state"] for row in listed)
    return f"{table}\n\n{', '.join(f'{count} {state}' for state, count in counts.items())}"


def cells(row: Mapping[str, Any]) -> list[str]:
    numbers = ["" if row[key] is None else form(row[key]) for key, form in _OF_LINE.values()]
    return [row["title"], row["state"], *numbers, str(len(row["fine_tuned"]) or ""), row["reason"]]


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


def find_garbage(*, cache: bool, checkpoints: bool) -> dict[Path, int]:
    """Paths that could be freed, with their sizes (bytes).

    Always includes half-made data of dead processes and checkpoints of failed runs.

    Args:
        cache: also prepared text and tokenizers.
        checkpoints: also the checkpoints of finished runs, except those that an unfinished run starts from.
    """
    garbage = [path for path in paths.cache().glob(f"*/*{PARTIAL}*") if not storage.is_locked(storage.lock_of(path))]
    if cache:
        garbage += [
            path for path in paths.cache().glob("*/*") if not path.name.endswith(LOCK) and PARTIAL not in path.name
        ]
    wanted = ("failed", "done") if checkpoints else ("failed",)
    needed = _needed()
    for folder in paths.runs().glob("*/"):
        if not is_locked(folder):
            garbage += folder.glob(f"*checkpoint{PARTIAL}*")
            if folder.name not in needed and _state(folder) in wanted:
                garbage += folder.glob("checkpoint")
    return {path: _size(path) for path in sorted(garbage)}


def _needed() -> set[str]:
    """The names of the runs that an unfinished run starts from."""
    needed = set()
    for file in paths.runs().glob(f"*/{RUN_FILE}"):
        with suppress(ConfigError):  # damaged, or of an earlier version
            start = read(file.parent).start_from
            if start and _state(file.parent) not in ("done", "failed"):
                needed.add(start.run)
    return needed


def _state(folder: Path) -> str:
    """The state of a run, or what works on it now, such as a fine-tuning; damaged if that cannot be read."""
    try:
        return states.taken(folder) or states.state(folder)
    except DamagedFileError:
        return "damaged"


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())


def free(garbage: Iterable[Path]) -> None:
    """Remove files and folders; if the process is killed, none is left half removed under its name."""
    for path in garbage:
        storage.remove(path) if PARTIAL in path.name else storage.discard(path)
