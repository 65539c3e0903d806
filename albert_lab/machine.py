"""What the machine has, as far as this process may use it."""

import os
from pathlib import Path

import psutil

# Where Linux says what a container may hold: cgroup version 2, then 1.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def cores() -> int:
    """CPU cores that this process may use: what the system allows, and what Slurm gave to its job."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if "SLURM_JOB_ID" in os.environ:
        given = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE") or ""
        found = min(found, int(given)) if given.isdecimal() and int(given) else found
    return found


def memory_bytes() -> int:
    """Memory that this process may use at most: the machine's, or what its container may hold."""
    found = [psutil.virtual_memory().total]
    for file in map(Path, _LIMITS):
        try:
            found.append(int(file.read_text()))
        except (OSError, ValueError):  # there is no such limit, or the word max
            continue
    return min(found)


def has_gpu() -> bool:
    """Whether there is an NVIDIA GPU, as far as the system tells without asking CUDA."""
    return Path("/proc/driver/nvidia/version").exists()
