"""The peak memory of this process."""

import re
import resource
import sys
from pathlib import Path

import torch


def peak_memory_bytes(device: torch.device) -> int:
    """Peak in bytes: of the allocator's tensors on CUDA, else of the resident memory of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")  # getrusage may return the peak of the parent process
    if status.is_file() and (match := re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)):
        return int(match[1]) * 1024
    assert sys.platform != "win32"  # which the program refuses
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
