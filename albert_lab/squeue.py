"""The jobs of this user in Slurm: jobs in the queue, and the final states of ended jobs."""

import subprocess
import time
from dataclasses import dataclass

# An answer of this age is recent enough for a listing, which asks about many runs.
FRESH_SECONDS = 5.0
# Timeout for a controller that does not answer.
_PATIENCE_SECONDS = 60

# States in which a job waits to start or to restart.
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")

_last: tuple[float, "dict[str, Job] | None"] | None = None


@dataclass(frozen=True)
class Job:
    """A job in the queue: number, state (Slurm's word), nodes, and reason for waiting."""

    number: str
    state: str
    nodes: str
    reason: str

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING

    @property
    def description(self) -> str:
        """The number with nodes or reason: `job 12 on n1`, `job 13: Dependency`."""
        if self.is_waiting:
            return f"job {self.number}" + (f": {self.reason}" if self.reason not in ("", "None") else "")
        return f"job {self.number}" + (f" on {self.nodes}" if self.nodes else "")


def jobs(max_age: float = 0.0) -> dict[str, Job] | None:
    """Unfinished jobs of this user by number; None if Slurm is not installed or does not answer.

    Args:
        max_age: maximal age in seconds of an earlier answer that may be returned.
    """
    global _last
    if _last is None or time.monotonic() - _last[0] >= max_age:
        text = _ask("squeue", "--me", "--array", "--noheader", "--format=%i|%T|%N|%r")
        known = None if text is None else dict(_job(line) for line in text.splitlines() if line.count("|") >= 3)
        _last = (time.monotonic(), known)
    return _last[1]


def _job(line: str) -> tuple[str, Job]:
    number, state, nodes, reason = (part.strip() for part in line.split("|", 3))
    return number, Job(number, state, nodes, reason)


def ended_as(number: str) -> str | None:
    """The state in which a job ended, such as OUT_OF_MEMORY; None if neither sacct nor scontrol knows it."""
    text = _ask("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={number}", "--format=State")
    if text and text.strip():
        return text.split()[0]
    text = _ask("scontrol", "--oneliner", "show", "job", number)
    fields = dict(word.split("=", 1) for word in (text or "").split() if "=" in word)
    return fields.get("JobState")


def _ask(*command: str) -> str | None:
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=_PATIENCE_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout
