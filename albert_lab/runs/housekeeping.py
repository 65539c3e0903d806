"""What there is of all runs: a table of their states, and disk space that can be freed."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tabulate import tabulate

from albert_lab import paths, storage
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.messages import duration
from albert_lab.runs import results, states
from albert_lab.runs.run import FAILURE, RECORD, RUN_FILE, read
from albert_lab.storage import LOCK, PARTIAL
from albert_lab.tasks.records import FOLDER

# Of the last line of the log: share of the budget, step, rate, losses in nats, seconds that are left; as in the table.
_OF_LINE: dict[str, Callable[[Any], str]] = {
    "share": "{:.0%}".format,
    "step": "{:,}".format,
    "tokens_per_second": "{:,.0f}".format,
    "loss": "{:.3f}".format,
    "mlm_loss": "{:.3f}".format,
    "pair_loss": "{:.3f}".format,
    "seconds_left": duration,
}
_WHILE_RUNNING = ("tokens_per_second", "seconds_left")


def rows(folder: Path, names: Collection[str] | None = None) -> list[dict[str, Any]]:
    """One row per run folder: state, numbers of its last logged step, fine-tunings, and why it failed or where it is.

    names: only these runs. Oldest first.
    """
    files = sorted(folder.glob(f"*/{RUN_FILE}"), key=lambda file: file.stat().st_mtime)
    return [_row(file.parent) for file in files if names is None or file.parent.name in names]


def _row(folder: Path) -> dict[str, Any]:
    try:
        state, lines = states.state(folder), results.read_metrics(folder)
        reason = states.failure(folder) if state == "failed" else str(states.queued(folder) or "")
    except DamagedFileError as error:
        state, lines, reason = "damaged", [], str(error)
    last = next((line for line in reversed(lines) if line["event"] == "training"), {})
    hidden = () if state == "running" else _WHILE_RUNNING
    numbers = {key: None if key in hidden else last.get(key) for key in _OF_LINE}
    tuned = sorted(file.stem for file in (folder / FOLDER).glob("*-seed*[0-9].json"))
    return {"run": folder.name, "state": state, **numbers, "fine_tuned": tuned, "reason": reason}


def text(listed: list[dict[str, Any]]) -> str:
    """Rows as a table of the columns that have anything, and the number of runs in each state."""
    if not listed:
        return "no runs yet"
    shown = [row | {key: form(row[key]) for key, form in _OF_LINE.items() if row[key] is not None} for row in listed]
    for row in shown:
        row["fine_tuned"] = len(row["fine_tuned"]) or None
    used = [key for key in listed[0] if any(row[key] for row in shown)]
    table = tabulate([[row[key] for key in used] for row in shown], used, tablefmt="simple", disable_numparse=True)
    counts = Counter(row["state"] for row in listed)
    return f"{table}\n\n{', '.join(f'{count} {state}' for state, count in counts.items())}"


def find_garbage(*, cache: bool, checkpoints: bool) -> dict[Path, int]:
    """Paths that could be freed, with their sizes (bytes).

    Always includes half-made data of dead processes and checkpoints of failed runs.

    Args:
        cache: also prepared text and tokenizers.
        checkpoints: also the checkpoints of finished runs, except those that an unfinished run starts from.
    """
    made = [path for path in paths.cache().glob("*/*") if not path.name.endswith(LOCK)]
    garbage = [
        path for path in made if (cache or PARTIAL in path.name) and not storage.is_locked(storage.lock_of(path))
    ]
    ended = (FAILURE, RECORD) if checkpoints else (FAILURE,)
    folders, needed = [*paths.runs().glob("*/")], _needed()
    for folder in folders:
        with suppress(DamagedFileError):
            if not states.taken(folder):
                garbage += folder.glob(f"*checkpoint{PARTIAL}*")
                if folder.name not in needed and any((folder / name).exists() for name in ended):
                    garbage += folder.glob("checkpoint")
    return {path: _size(path) for path in sorted(garbage)}


def _needed() -> set[str]:
    """The names of the runs that an unfinished run starts from."""
    needed = set()
    for file in paths.runs().glob(f"*/{RUN_FILE}"):
        with suppress(ConfigError):  # damaged, or of an earlier version
            start = read(file.parent).start_from
            if start and states.state(file.parent) not in ("done", "failed"):
                needed.add(start.run)
    return needed


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())


def free(garbage: Iterable[Path]) -> None:
    """Remove files and folders; if the process is killed, none is left half removed under its name."""
    for path in garbage:
        storage.remove(path) if PARTIAL in path.name else storage.discard(path)
