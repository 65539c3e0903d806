"""The device and the precision of a run."""

import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from albert_lab.errors import ConfigError
from albert_lab.rank import ALONE, Rank


def choose_device(name: str, rank: Rank = ALONE) -> torch.device:
    """The device of a run or of one of its processes: the named one; with `auto`, CUDA if available, else the CPU.

    Raises:
        ConfigError: machine.device=cuda on a machine without it, or fewer GPUs than processes.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("machine.device=cuda: this machine or this build of torch has no CUDA (allowed: auto, cpu)")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    if rank.of == 1:
        return torch.device("cuda")
    if rank.is_bound and torch.cuda.device_count() == 1:
        return torch.device("cuda", 0)
    if rank.of_machine > torch.cuda.device_count():
        raise ConfigError(
            f"machine.processes: {rank.of_machine} processes on {torch.cuda.device_count()} GPUs; each needs its own"
        )
    torch.cuda.set_device(rank.local)
    return torch.device("cuda", rank.local)


def device_name(device: torch.device) -> str:
    """The name of a GPU, or `cpu`."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def choose_precision(name: str, device: torch.device) -> str:
    """bf16 or fp32: the named one; with `auto`, bf16 if the device has it natively (emulation is many times slower)."""
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if _cpu_computes_bf16() else "fp32"


def _cpu_computes_bf16() -> bool:
    if not torch.backends.mkldnn.is_available():  # on a Mac, the operator below does not exist
        return False
    if platform.machine() in ("x86_64", "AMD64"):  # this operator also accepts AVX-512, which only emulates bf16
        return torch.cpu._is_avx512_bf16_supported()
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def autocast(precision: str, device: torch.device) -> Callable[[], AbstractContextManager[object]]:
    """A function that returns the context of forward passes: bf16 autocast, or none."""
    if precision == "bf16":
        return lambda: torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext
