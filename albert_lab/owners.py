"""The owner of a lock, a mark or an incomplete file: a process by number, job and host, and whether it has ended.

On a shared file system, a number alone is not enough: the process 4711 of another host is not visible here.
"""

import os
import re
import socket
from functools import cache
from pathlib import Path

import psutil

from albert_lab import squeue

_FORM = re.compile(r"(\d+)(?:\.(\w+))?@([^@]+)$")


def own() -> str:
    """This process, PID@HOST or PID.JOB@HOST: a part of the names of files that belong only to it."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return f"{os.getpid()}{'.' + job if job.isalnum() else ''}@{_host()}"


@cache
def _host() -> str:
    """This host; a container with separate process numbers counts as a separate host."""
    name = re.sub(r"[^\w.-]", "-", socket.gethostname()) or "host"
    try:
        numbering = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # another system
        return name
    # The initial PID namespace of a Linux kernel has this inode on every host.
    return name if numbering == 0xEFFFFFFC else f"{name}-{numbering}"


def is_here(text: str) -> bool:
    """Whether the process at the end of a text belongs to this host, according to the text."""
    found = _FORM.search(text)
    return found is not None and found.group(3) == _host()


def has_ended(text: str) -> bool | None:
    """Whether the process at the end of a text has ended; None if unknown.

    For another host, it is known only for processes of a job, if Slurm answers: a job that it does not list has ended.
    """
    found = _FORM.search(text)
    if found is None:
        return None
    number, job, host = found.groups()
    if host == _host():
        return not psutil.pid_exists(int(number))
    if job is None or job == os.environ.get(
        "SLURM_JOB_ID"
    ):  # the job may be requeued while an earlier process still lives
        return None
    listed = squeue.jobs(max_age=squeue.FRESH_SECONDS)
    return None if listed is None else job not in listed


def is_abandoned(path: Path, seconds: float, now: float) -> bool:
    """Whether the owner in the name of a path has ended or, if unknown, has not touched the path for some time.

    Args:
        path: a file that its owner touches, or a folder that it writes to.
        seconds: the time without a touch.
        now: the current time of the file system (seconds since the epoch).
    """
    ended = has_ended(path.name)
    if ended is not None:
        return ended
    newest = max((each.stat().st_mtime for each in (path, *(path.glob("*") if path.is_dir() else ()))), default=now)
    return now - newest > seconds
