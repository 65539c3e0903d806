"""The device of a run: its choice, precision, memory, and clock, and the copies to it and back."""

import platform
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil
import torch
from rich.filesize import decimal
from torch import Tensor

from albert_lab.config.schema import RunConfig
from albert_lab.data.batches import Batch
from albert_lab.errors import ConfigError
from albert_lab.machine import ALONE, Rank
from albert_lab.model.counts import count

Tensors = dict[str, Tensor | None]
Targets = dict[str, Tensor]

_FLOAT32_BYTES = 4
# Bytes per token of a batch before it is on the device: ids, mask, segments and labels from the
# loader.
_LOADED_BYTES_PER_TOKEN = 26


def choose_device(name: str, rank: Rank = ALONE) -> torch.device:
    """The device of a run or of one of its processes: the named one; with `auto`, CUDA if
    available, else the CPU.

    Raises:
        ConfigError: machine.device=cuda on a machine without it, or fewer GPUs than processes.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "machine.device=cuda: this machine or this build of torch has no CUDA (allowed: auto, "
            "cpu)"
        )
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    if rank.total == 1:
        return torch.device("cuda")
    if rank.total_here > torch.cuda.device_count():
        raise ConfigError(
            f"machine.processes={rank.total_here}: each needs a GPU, of "
            f"{torch.cuda.device_count()} here"
        )
    torch.cuda.set_device(rank.number_here)
    return torch.device("cuda", rank.number_here)


def choose_precision(name: str, device: torch.device) -> str:
    """The precision of a run: the named one; with `auto`, bf16 where it is native (emulation is
    slow), else fp32.
    """
    if name != "auto":
        return name
    if device.type == "cuda":
        has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    elif platform.machine() in ("x86_64", "AMD64"):
        # the operator below also accepts AVX-512, which emulates bf16
        has_bf16 = torch.cpu._is_avx512_bf16_supported()
    else:  # on a Mac, there is no such operator
        has_bf16 = (
            torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
        )
    return "bf16" if has_bf16 else "fp32"


def autocast(precision: str, device: torch.device) -> Callable[[], AbstractContextManager[object]]:
    """A function that returns the context of forward passes: autocast to bf16, or none."""
    is_bf16 = choose_precision(precision, device) == "bf16"
    return partial(torch.autocast, device.type, dtype=torch.bfloat16) if is_bf16 else nullcontext


def check_memory(config: RunConfig) -> None:
    """Check that main memory has room for the least that training takes: the weights, their
    gradients and a moment of each, and a batch or a held-out set.

    Raises:
        ConfigError: memory is too small; names both numbers.
    """
    evaluation = config.evaluation
    sequences = max(config.batch_size, evaluation.num_pairs, evaluation.num_probe_pairs)
    needed = 3 * _FLOAT32_BYTES * count(config).total
    needed += sequences * config.max_sequence_length * _LOADED_BYTES_PER_TOKEN
    if needed > (total := psutil.virtual_memory().total):
        raise ConfigError(
            f"training needs at least {decimal(needed)}, and this machine has {decimal(total)}: "
            "lower the sizes of model, batch_size, max_sequence_length or evaluation.num_pairs"
        )


def peak_memory_bytes(device: torch.device) -> int:
    """Peak in bytes: of the allocator's tensors on CUDA, else of the resident memory of the
    process.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")  # getrusage may return the peak of the parent process
    if status.is_file() and (kilobytes := status.read_text().partition("VmHWM:")[2].split()):
        return int(kilobytes[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def inputs_of(batch: Batch, device: torch.device, *, needs_mask: bool = False) -> Tensors:
    """The model's inputs: input_ids, token_type_ids, attention_mask [batch, sequence],
    masked_positions [masked].

    Unless a mask is needed, it is None if no sequence is padded, since fused attention is faster
    without. On a CPU it is never None.
    """
    is_masked = needs_mask or device.type == "cpu" or not batch.attention_mask.all()
    return {
        "input_ids": tensor_on(batch.input_ids, device),
        "token_type_ids": tensor_on(batch.token_type_ids, device),
        "attention_mask": tensor_on(batch.attention_mask, device) if is_masked else None,
        "masked_positions": tensor_on(batch.masked_positions, device),
    }


def labels_of(batch: Batch, device: torch.device) -> Targets:
    """The model's targets: masked_labels [masked], pair_labels [batch]."""
    return {
        "masked_labels": tensor_on(batch.masked_labels, device),
        "pair_labels": tensor_on(batch.pair_labels, device),
    }


def tensor_on(array: np.ndarray, device: torch.device) -> Tensor:
    """An array as a tensor; a copy to a GPU is asynchronous, from pinned memory."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def fetch(parts: Sequence[Tensor]) -> np.ndarray:
    """Concatenates the parts of a result on the CPU; this is where an evaluation waits for its
    device.
    """
    return torch.cat(list(parts)).cpu().numpy()


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Clock:
    """Counts training seconds inside `training()`, and total seconds since it was created.

    It waits for an asynchronous device on entry and exit, so that the device's work is counted
    where it was started. A clock that loads the state of another clock continues from it.
    """

    def __init__(self, device: torch.device, time: Callable[[], float] = perf_counter):
        self._device = device
        self._time = time
        self._total_since = time()
        self._training_seconds = 0.0
        self._training_since: float | None = None

    @contextmanager
    def training(self) -> Iterator[None]:
        """Context in which the training clock runs."""
        assert self._training_since is None, "the training clock is already running"
        synchronize(self._device)
        self._training_since = self._time()
        try:
            yield
            synchronize(self._device)
        finally:
            self._training_seconds = self.training_seconds
            self._training_since = None

    @property
    def training_seconds(self) -> float:
        running = 0.0 if self._training_since is None else self._time() - self._training_since
        return self._training_seconds + running

    @property
    def total_seconds(self) -> float:
        return self._time() - self._total_since

    def state_dict(self) -> dict[str, float]:
        return {"training_seconds": self.training_seconds, "total_seconds": self.total_seconds}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from another clock's state; the seconds since this one was created are added."""
        self._training_seconds = state["training_seconds"]
        self._total_since -= state["total_seconds"]
