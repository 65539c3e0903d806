"""The memory that training needs at least, and the peak of this process."""

import re
import resource
import sys
from pathlib import Path

import torch

from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.machine import has_gpu, memory_bytes
from albert_lab.model.counts import count
from albert_lab.units import size

FLOAT32_BYTES = 4
# Bytes per token of a batch before it is on the device: ids, mask, segments and labels from the loader.
_LOADED_BYTES_PER_TOKEN = 26


def check_memory(config: RunConfig) -> None:
    """Check that main memory has room for the least that training takes, before anything is built.

    That is a batch or a held-out set, and the weights, on a CPU with gradients and two moments, in float32.

    Raises:
        ConfigError: memory is too small; names both numbers, unless machine.memory_check=false.
    """
    machine = config.machine
    on_cpu = machine.device == "cpu" or (machine.device == "auto" and not has_gpu())
    sequences = max(config.batch_size, config.evaluation.num_pairs, config.evaluation.num_probe_pairs)
    needed = FLOAT32_BYTES * count(config).total * (4 * machine.processes if on_cpu else 1)
    needed += sequences * config.max_sequence_length * _LOADED_BYTES_PER_TOKEN
    if machine.memory_check and needed > memory_bytes():
        raise ConfigError(
            f"training needs at least {size(needed)}, and this machine has {size(memory_bytes())}: lower the sizes of"
            " model, batch_size, max_sequence_length or evaluation.num_pairs; or give machine.memory_check=false"
        )


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
