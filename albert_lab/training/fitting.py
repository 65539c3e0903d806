"""The micro-batch of machine.micro_batch_size=auto: the largest that fits, tried out before training."""

from collections.abc import Callable

import torch

from albert_lab.data.batches import Batch, even_size
from albert_lab.machine import memory_bytes
from albert_lab.training.step import Step

# Of the memory that is free: batches differ in how many tokens are predicted, and allocators leave gaps.
_GPU_SHARE = 0.9
# Of all memory: other processes need theirs, and a system without memory kills, where a GPU only refuses.
_CPU_SHARE = 0.5
# How torch says on a CPU that there is no memory.
_CPU_WORDS = ("can't allocate memory", "not enough memory")


def usable_memory_bytes(device: torch.device, processes: int = 1) -> int:
    """Memory that training may fill: of a GPU what is free, of a CPU a part of each of the machine's processes."""
    if device.type == "cuda":
        return int(_GPU_SHARE * torch.cuda.mem_get_info(device)[0])
    return int(_CPU_SHARE * memory_bytes()) // processes


def fit(step: Step, batch: Batch, size: int, say: Callable[[str], None]) -> int:
    """The sequences of a micro-batch that fit, the same in all processes of a run; says once what it found.

    Args:
        step: not taken: a rehearsal changes no weight.
        batch: what is rehearsed.
        size: what is tried first; it is halved while the memory runs out.
        say: takes a line for the user.

    Raises:
        RuntimeError: not even one sequence fits.
    """
    size = first = even_size(step.share, size)
    while not _fits(step, batch, size):
        if size == 1:
            raise RuntimeError(f"{step.device.type} has no memory for the training on a single sequence")
        size = even_size(step.share, size // 2)
    found = step.processes.smallest(size)
    halved = f"; {first:,} did not fit" if found < first else ""
    say(f"machine.micro_batch_size=auto: {found:,} of {len(batch):,} sequences a forward pass{halved}")
    return found


def _fits(step: Step, batch: Batch, size: int) -> bool:
    try:
        step.rehearse(batch, size)
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and not any(word in str(error) for word in _CPU_WORDS):
            raise
    else:
        return True
    if step.device.type == "cuda":  # outside of the handler, whose traceback holds on to tensors
        torch.cuda.empty_cache()
    return False
