"""The owner of a lock, a mark or a half-made file: a process by number, job and host, and whether it has ended.

On a shared file system a number alone means nothing: the process 4711 of another host is not to be found here.
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
    """This process, PID@HOST or PID.JOB@HOST: a part of the name of whatever is its alone."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return f"{os.getpid()}{'.' + job if job.isalnum() else ''}@{_host()}"


@cache
def _host() -> str:
    """This host; a container that numbers its processes by itself counts as one."""
    name = re.sub(r"[^\w.-]", "-", socket.gethostname()) or "host"
    try:
        numbering = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # another system
        return name
    # The first numbering of a Linux kernel has this inode, whatever the host.
    return name if numbering == 0xEFFFFFFC else f"{name}-{numbering}"


def is_here(text: str) -> bool:
    """Whether the process that a text ends with belongs to this host, as far as the text shows."""
    found = _FORM.search(text)
    return found is not None and found.group(3) == _host()


def has_ended(text: str) -> bool | None:
    """Whether the process that a text ends with has ended; None where that cannot be known from here.

    Of another host it is known from its job alone, if Slurm answers: what it does not list is over.
    """
    found = _FORM.search(text)
    if found is None:
        return None
    number, job, host = found.groups()
    if host == _host():
        return not psutil.pid_exists(int(number))
    if job is None or job == os.environ.get("SLURM_JOB_ID"):  # requeued: an earlier process of it may live on
        return None
    listed = squeue.jobs(max_age=squeue.FRESH_SECONDS)
    return None if listed is None else job not in listed


def is_abandoned(path: Path, seconds: float, now: float) -> bool:
    """Whether the owner that a path names has ended or, where that cannot be known, has left it alone for long.

    Args:
        path: a file that its owner touches, or a folder that it writes to.
        seconds: how long is long.
        now: the present, as the file system has it (seconds since the epoch).
    """
    ended = has_ended(path.name)
    if ended is not None:
        return ended
    newest = max((each.stat().st_mtime for each in (path, *(path.glob("*") if path.is_dir() else ()))), default=now)
    return now - newest > seconds
