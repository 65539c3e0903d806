"""This process on its machine: cores and GPUs that it may use, and its rank among the processes of
its run.
"""

import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from albert_lab.errors import ConfigError

_MOST_DIGITS = 10  # of a number of processes, cores or runs
# Variables that a study sets for its runs: how many train at a time, how many of them on one GPU,
# and the threads of each.
JOBS = "ALBERT_LAB_JOBS"
JOBS_ON_GPU = "ALBERT_LAB_JOBS_ON_GPU"
THREADS = "ALBERT_LAB_THREADS"
# the variables of torchrun, in the order of Rank
RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
# of GPUs: NVIDIA's, that of WSL2, AMD's
_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("/dev/kfd"))
# Of the environment of a child process: glibc keeps freed memory, in huge pages where the system
# allows it, instead of returning each large tensor to the system. A step computes the same numbers,
# in 0.84 to 0.90 of the time. Source: the glibc manual, "Memory Allocation Tunables".
_TUNABLES = ("hugetlb=1", f"mmap_threshold={1 << 32}", f"trim_threshold={1 << 32}")
ALLOCATOR = {"GLIBC_TUNABLES": ":".join(f"glibc.malloc.{tunable}" for tunable in _TUNABLES)}


@dataclass(frozen=True)
class Rank:
    """The number of a process among all those of its run, and among those of them on its machine.

    Process 0 is the leader: only it locks, logs, saves, records and fine-tunes.
    """

    number: int = 0
    total: int = 1
    number_here: int = 0
    total_here: int = 1

    @property
    def leads(self) -> bool:
        return self.number == 0


ALONE = Rank()


def read_rank() -> Rank:
    """The rank in the environment of a process that torchrun started; elsewhere a process is
    alone.
    """
    if RANK[-1] not in os.environ:
        return ALONE
    return Rank(*(whole_number(name) or 0 for name in RANK))


def whole_number(variable: str) -> int | None:
    """The value of a variable of the environment; None if it is not set.

    Raises:
        ConfigError: it is no whole number.
    """
    text = os.environ.get(variable) or None
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS):
        raise ConfigError(
            f"{variable}={text} in the environment is no whole number: correct it, or unset it"
        )
    return int(text)


def cores() -> int:
    """Number of CPU cores that this process may use, as limited by the system and by its Slurm
    job; ConfigError if the job's limit is no number.
    """
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(count, whole_number("SLURM_CPUS_PER_TASK") or count)


def busy() -> str:
    """That other programs use this machine, if more are running than it has cores; else empty."""
    load = os.getloadavg()[0]
    return (
        f"This machine is busy: a load of {load:.1f} on {cores()} cores."
        if load > cores() + 0.5
        else ""
    )


def cpu_model() -> str:
    """The kernel's name for the processor in Linux on x86; elsewhere that of Python, or the
    architecture.
    """
    known = Path("/proc/cpuinfo")
    text = known.read_text() if known.is_file() else ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


def gpus() -> list[str]:
    """The GPUs that this process may use, as torch counts them, in the form of
    CUDA_VISIBLE_DEVICES.
    """
    if not any(device.exists() for device in _DRIVERS):  # then torch finds none
        return []
    import torch  # here, since it takes a second

    count = torch.cuda.device_count()  # by the driver's library: this initialises no GPU
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    return chosen.split(",")[:count]  # as CUDA does, torch ignores all from the first unknown


def gpus_of_jobs(jobs: int, processes: int = 1) -> list[list[str]]:
    """The GPUs of each of `jobs` simultaneous runs, one at least; of 0, as many runs as have
    `processes` GPUs each.
    """
    every = gpus()
    jobs = jobs or max(1, len(every) // processes)
    size = max(1, len(every) // jobs)
    in_turn = every * jobs  # from the first again, if there are more runs than GPUs
    return [in_turn[job * size :][:size] for job in range(jobs)]
