"""machine.micro_batch_size=auto: the largest micro-batch that fits into memory, found by trials before training."""

from collections.abc import Callable

import torch

from albert_lab.data.batches import Batch, even_size
from albert_lab.machine import memory_bytes
from albert_lab.training.step import Step

# Share of free memory: the number of predicted tokens differs between batches, and allocators leave gaps.
_GPU_SHARE = 0.9
# Share of all memory: other processes need memory, and a system without memory kills, while a GPU only raises an error.
_CPU_SHARE = 0.5
# Texts of torch's errors if a CPU has no memory.
_CPU_WORDS = ("can't allocate memory", "not enough memory")


def usable_memory_bytes(device: torch.device, processes: int = 1) -> int:
    """Memory for training: a share of a GPU's free memory, or of the machine's memory divided by its processes."""
    if device.type == "cuda":
        return int(_GPU_SHARE * torch.cuda.mem_get_info(device)[0])
    return int(_CPU_SHARE * memory_bytes()) // processes


def fit(step: Step, batch: Batch, size: int, say: Callable[[str], None]) -> int:
    """The largest micro-batch size that fits into memory, the same in all processes of a run; prints it once.

    Args:
        step: rehearsed on the batch, without any change of weights.
        size: the first size to try; it is halved until the memory suffices.

    Raises:
        RuntimeError: a single sequence does not fit.
    """
    size = first = even_size(step.share, size)
    while not _fits(step, batch, size):
        if size == 1:
            raise RuntimeError(f"{step.device.type} has no memory for the training on a single sequence")
        size = even_size(step.share, size // 2)
    common = size
    halved = f"; {first:,} did not fit" if common < first else ""
    say(f"machine.micro_batch_size=auto: {common:,} of {len(batch):,} sequences a forward pass{halved}")
    return common


def _fits(step: Step, batch: Batch, size: int) -> bool:
    try:
        step.rehearse(batch, size)
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and not any(word in str(error) for word in _CPU_WORDS):
            raise
    else:
        return True
    if step.device.type == "cuda":  # after the handler, whose traceback keeps tensors alive
        torch.cuda.empty_cache()
    return False
