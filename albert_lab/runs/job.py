"""The Slurm job that trains a run: its number in the run's folder, its state in the queue, and how it ended."""

import json
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from albert_lab import files, squeue
from albert_lab.storage import write_atomically

FILE = "slurm.json"
# The exit code of the run's process and the number of its job, which writes it at its end, if it can.
EXIT = "slurm.exit"
_REMEDY = "remove it: the run is then submitted again"
_LAST_LINES = 4
# States of jobs whose runs did not fail: the same command resumes them.
_ENDED_BY_SLURM = ("CANCELLED", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "REVOKED")
_LOG_BYTES = 16_384


class Submitted(BaseModel):
    """The content of slurm.json: the job, the arguments of its process, and the job that prepares its text, if any."""

    job: str = Field(pattern=r"^\w+$")
    arguments: list[str] = Field(validation_alias=AliasChoices("arguments", "words"))  # words: of earlier versions
    preparation: str | None = None


def write(folder: Path, job: str, arguments: Sequence[str], preparation: str | None) -> None:
    content = Submitted(job=job, arguments=list(arguments), preparation=preparation)
    write_atomically(folder / FILE, json.dumps(content.model_dump()) + "\n")


def read(folder: Path) -> Submitted | None:
    """The last job of a run, ended or not; None if there was none.

    Raises:
        DamagedFileError: its file cannot be read.
    """
    file = folder / FILE
    return files.read_json(file, Submitted, _REMEDY) if file.exists() else None


def forget(folder: Path) -> None:
    for name in (FILE, EXIT):
        (folder / name).unlink(missing_ok=True)


def find_queued(folder: Path) -> squeue.Job | None:
    """The job of a run in the queue; None if it is not there or Slurm does not answer."""
    submitted = read(folder)
    if submitted is None:
        return None
    return (squeue.jobs(max_age=squeue.FRESH_SECONDS) or {}).get(submitted.job)


def exit_code(folder: Path, number: str) -> int | None:
    """The exit code of the process of a run's job, or minus the number of the signal that killed it; None if unknown.

    An earlier job of the run, which was still running as this one was submitted, may have written its own.
    """
    try:
        text, of = (folder / EXIT).read_text().split()
        code = int(text)
    except (OSError, ValueError):
        return None
    if of != number:
        return None
    return 128 - code if code > 128 + 1 and code != 130 else code


def log(folder: Path, number: str) -> Path:
    return folder / f"slurm-{number}.out"


def as_columns(folder: Path) -> dict[str, Any]:
    """The run's job in the queue, its node, and its place in words, as columns of a listing."""
    queued = find_queued(folder)
    if queued is None:
        return {"job": None, "node": None, "place": None}
    return {"job": queued.number, "node": queued.nodes or None, "place": queued.description}


def describe_end(folder: Path) -> str | None:
    """How the last job of an unfinished run ended, with the last lines of its log; None if there was no job.

    If Slurm does not answer, the text says so, since the job may still be in the queue.
    """
    submitted = read(folder)
    if submitted is None:
        return None
    name, code = f"job {submitted.job}", exit_code(folder, submitted.job)
    if code is None and squeue.jobs(max_age=squeue.FRESH_SECONDS) is None:
        return f"{name}: Slurm does not answer here"
    said = _last_lines(log(folder, submitted.job))
    if code is not None:
        how = f"{name} ended with {'signal' if code < 0 else 'exit code'} {abs(code)}"
    else:
        state = squeue.ended_as(submitted.job)
        how = f"{name} ended without an exit code (" + (
            f"Slurm says {state})" if state else "neither sacct nor scontrol says why)"
        )
        if not said and submitted.preparation:
            how += f"; the job that prepares its text: {_last_lines(Path(submitted.preparation)) or 'no log'}"
    return f"{how}: {said}" if said else f"{how}; it wrote no log"


def was_stopped(folder: Path) -> bool:
    """Whether Slurm ended the last job of a run without an exit code: cancelled, out of time, or node lost.

    Read from the end of the job's log, or from sacct or scontrol if available.
    """
    submitted = read(folder)
    if submitted is None:
        return False
    said = _last_lines(log(folder, submitted.job))
    if re.search(r"JOB \d+ ON \S+ CANCELLED AT", said):
        return True
    return (squeue.ended_as(submitted.job) or "").rstrip("+") in _ENDED_BY_SLURM


def _last_lines(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - _LOG_BYTES))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    return " | ".join(deque((line.strip() for line in text.splitlines() if line.strip()), _LAST_LINES))
