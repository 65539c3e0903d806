"""Resources of the machine that this process may use, and the settings of its memory allocator."""

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

import psutil

# Number of simultaneous runs that stands for: choose by the machine.
AUTO_JOBS = 0

# Files with the memory limit of a container in Linux: cgroup version 2, then 1.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_CPU = Path("/proc/cpuinfo")
# By default, glibc returns each large tensor to the system when it is freed, so that every step gets all its pages
# anew. Here freed memory is kept, in huge pages where the system allows it. A step computes the same numbers, in 0.84
# to 0.90 of the time.
_TUNABLES = (
    "glibc.malloc.hugetlb=1",
    "glibc.malloc.mmap_threshold=4294967296",
    "glibc.malloc.trim_threshold=4294967296",
)


def cores() -> int:
    """Number of CPU cores that this process may use, as limited by the system and by its Slurm job."""
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if "SLURM_JOB_ID" in os.environ:
        of_job = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE") or ""
        count = min(count, int(of_job)) if of_job.isdecimal() and int(of_job) else count
    return count


def memory_bytes() -> int:
    """Memory limit of this process in bytes: the machine's memory, or the limit of its container or Slurm job."""
    limits = [psutil.virtual_memory().total]
    for file in map(Path, _LIMITS):
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # no limit, or the word max
            continue
    megabytes = os.environ.get("SLURM_MEM_PER_NODE", "")  # limit of a job; 0 means the whole node
    if "SLURM_JOB_ID" in os.environ and megabytes.isdecimal() and int(megabytes):
        limits.append(int(megabytes) << 20)
    return min(limits)


def cpu_model() -> str:
    """The system's name for the processor, or its architecture if there is no name."""
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        try:
            model = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            model = ""
    else:
        model = _first_value(_CPU, "model name")  # exists for x86 processors, not for ARM
    return model or platform.processor() or platform.machine()


def gpus() -> list[str]:
    """The GPUs that this process may use, as torch counts them, in the form of CUDA_VISIBLE_DEVICES."""
    if not _has_driver():
        return []
    import torch  # here, since it takes a second

    count = torch.cuda.device_count()  # by the driver's library: this initialises no GPU
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [str(number) for number in range(count)]
    names = [name.strip() for name in chosen.split(",")]
    return names[:count]  # as CUDA does, torch ignores all from the first unknown


def _has_driver() -> bool:
    """Whether there is a driver of a GPU that torch could use: NVIDIA's library, or AMD's device."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Path("/dev/kfd").exists()
    return True


def gpu_model() -> str | None:
    """The name of the first GPU that this process may use; None without a GPU."""
    if not has_gpu():
        return None
    import torch

    return torch.cuda.get_device_name(0)


def has_gpu() -> bool:
    """Whether torch finds a GPU that this process may use."""
    return bool(gpus())


def _first_value(file: Path, name: str) -> str:
    """The value of the first line `name: value` in a file of the kernel; empty if there is none."""
    try:
        lines = [line.partition(":") for line in file.read_text().splitlines()]
    except OSError:
        return ""
    return next((value.strip() for before, _, value in lines if before.strip() == name), "")


def jobs_at_once(asked: int, processes: int) -> int:
    """Number of simultaneous runs: the given number; for AUTO_JOBS, one per GPU, or per group of `processes` GPUs."""
    return max(1, len(gpus()) // processes) if asked == AUTO_JOBS else asked


def shared_out(things: list[str], parts: int) -> list[list[str]]:
    """Divides things into parts of equal size; if there are fewer things than parts, one per part, used repeatedly."""
    if not things:
        return [[] for _ in range(parts)]
    size = len(things) // parts
    return [things[part * size : (part + 1) * size] or [things[part % len(things)]] for part in range(parts)]


def allocator_environment() -> dict[str, str]:
    """The settings of the memory allocator for a child process; the user's GLIBC_TUNABLES have precedence.

    The variable applies from the start of a process. Other C libraries, and older versions of glibc, ignore it.
    Source: the glibc manual, "Memory Allocation Tunables".
    """
    own = os.environ.get("GLIBC_TUNABLES")
    return {"GLIBC_TUNABLES": ":".join([*_TUNABLES, own] if own else _TUNABLES)}
