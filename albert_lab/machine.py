"""What the machine has, as far as this process may use it."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import psutil

# The number of runs at a time that is left to the machine.
AUTO_JOBS = 0

# Where Linux says how much memory a container may use: cgroup version 2, then 1.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_CPU = Path("/proc/cpuinfo")


def cores() -> int:
    """CPU cores that this process may use: what the system allows, and what Slurm gave to its job."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if "SLURM_JOB_ID" in os.environ:
        given = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE") or ""
        found = min(found, int(given)) if given.isdecimal() and int(given) else found
    return found


def memory_bytes() -> int:
    """Memory that this process may use at most: the machine's, or the limit of its container."""
    found = [psutil.virtual_memory().total]
    for file in map(Path, _LIMITS):
        try:
            found.append(int(file.read_text()))
        except (OSError, ValueError):  # there is no such limit, or the word max
            continue
    megabytes = os.environ.get("SLURM_MEM_PER_NODE", "")  # of a job; 0 is all of the node
    if "SLURM_JOB_ID" in os.environ and megabytes.isdecimal() and int(megabytes):
        found.append(int(megabytes) << 20)
    return min(found)


def cpu_model() -> str:
    """What the system calls the processor; where it has no name for it, its architecture."""
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        try:
            found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            found = ""
    else:
        found = _first_value(_CPU, "model name")  # of an x86 processor; ARM has none
    return found or platform.processor() or platform.machine()


def gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them, without asking CUDA."""
    if not has_gpu():
        return []
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name.strip() for name in chosen.split(",") if name.strip() not in ("", "-1")]
    return [str(number) for number in range(len(list(Path("/dev").glob("nvidia[0-9]*"))))]


def gpu_model() -> str | None:
    """What the driver calls the first GPU, without asking CUDA; None where there is none."""
    found = (_first_value(file, "Model") for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")))
    return next(filter(None, found), None)


def _first_value(file: Path, name: str) -> str:
    """The value of the first line `name: value` of a file of the kernel; empty where there is none."""
    try:
        lines = [line.partition(":") for line in file.read_text().splitlines()]
    except OSError:
        return ""
    return next((value.strip() for before, _, value in lines if before.strip() == name), "")


def jobs_at_once(asked: int, processes: int) -> int:
    """Runs at a time: as many as asked for, or for AUTO_JOBS one for each GPU, or for the GPUs of its processes."""
    return max(1, len(gpus()) // processes) if asked == AUTO_JOBS else asked


def shared_out(things: list[str], parts: int) -> list[list[str]]:
    """The things in parts of equal size, or one for each part, used repeatedly, where there are fewer."""
    if not things:
        return [[] for _ in range(parts)]
    size = len(things) // parts
    return [things[part * size : (part + 1) * size] or [things[part % len(things)]] for part in range(parts)]


def has_gpu() -> bool:
    """Whether there is an NVIDIA GPU, as far as the system shows without asking CUDA."""
    return Path("/proc/driver/nvidia/version").exists()
