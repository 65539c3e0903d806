"""The device and the precision of a run."""

import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from albert_lab.errors import ConfigError
from albert_lab.rank import ALONE, Rank

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
_TENSOR_CORES = (7, 0)  # compute capability of the first GPUs that have them, for fp16


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
    """The precision of a run: the named one; with `auto`, one that the device has natively (emulation is many times
    slower): bf16, or fp16 on a GPU with tensor cores, or fp32.

    Raises:
        ConfigError: a precision that CPUs do not have.
    """
    if name in ("fp16", "tf32") and device.type == "cpu":
        raise ConfigError(f"machine.precision={name}: only for GPUs (allowed on a CPU: auto, bf16, fp32)")
    if name != "auto":
        return name
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bf16"
        return "fp16" if torch.cuda.get_device_capability(device) >= _TENSOR_CORES else "fp32"
    return "bf16" if _cpu_computes_bf16() else "fp32"


def _cpu_computes_bf16() -> bool:
    if not torch.backends.mkldnn.is_available():  # on a Mac, the operator below does not exist
        return False
    if platform.machine() in ("x86_64", "AMD64"):  # this operator also accepts AVX-512, which only emulates bf16
        return torch.cpu._is_avx512_bf16_supported()
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def autocast(precision: str, device: torch.device) -> Callable[[], AbstractContextManager[object]]:
    """A function that returns the context of forward passes: autocast to bf16 or fp16, or none.

    It sets whether this process computes matrix products of float32 in TF32, in backward passes too.
    """
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    if precision in _AUTOCAST:
        return lambda: torch.autocast(device.type, dtype=_AUTOCAST[precision])
    return nullcontext


def loss_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """The scaler of losses, whose gradients would else vanish in fp16; for another precision it does nothing."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
