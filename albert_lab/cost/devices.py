"""Devices for cost estimates: their peaks, their memory, and the assumed share of the peak."""

from functools import cache
from pathlib import Path

from omegaconf import OmegaConf
from pydantic import BaseModel, ConfigDict

from albert_lab import machine
from albert_lab.config.schema import MachineConfig
from albert_lab.errors import ConfigError

CPU = "cpu"
FILE = Path(__file__).with_name("devices.yaml")


class _DevicePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Gpu(_DevicePart):
    """A GPU: peaks of dense matrix products (TFLOP/s), memory (GiB), and the part of its name that drivers use.

    measured: the share of the peak that training at scale=gpu reaches, by precision.
    """

    title: str
    names: tuple[str, ...]
    memory: float
    bf16: float | None
    fp16: float | None = None
    fp32: float
    measured: dict[str, float] = {}

    def precision(self, asked: str) -> str:
        """The precision for a value of machine.precision on it."""
        return ("bf16" if self.bf16 else "fp16" if self.fp16 else "fp32") if asked == "auto" else asked

    def peak(self, precision: str) -> float:
        """The peak FLOP/s of matrix products; that of TF32 is half of that of bf16 on every GPU that has it."""
        half = self.bf16 or self.fp16 or self.fp32
        tf32 = self.bf16 / 2 if self.bf16 else self.fp32
        return 1e12 * {"bf16": half, "fp16": half, "tf32": tf32, "fp32": self.fp32}[precision]

    def share(self, precision: str) -> float:
        """The share of the peak that training reaches, as far as it is known: measured, or assumed."""
        return self.measured.get(precision, table().assumed_utilisation[precision])

    def is_called(self, name: str) -> bool:
        """Whether it is the device that torch or its driver calls by that name."""
        return any(part.lower() in name.lower() for part in self.names)


class _Table(_DevicePart):
    assumed_utilisation: dict[str, float]
    default: str
    devices: dict[str, Gpu]


@cache
def table() -> _Table:
    """The content of devices.yaml."""
    return _Table.model_validate(OmegaConf.to_container(OmegaConf.load(FILE)))


def with_share(text: str, device: str, precision: str, share: float) -> str:
    """The text of devices.yaml with the measured share of the peak of a device."""
    measured = table().devices[device].measured | {precision: round(share, 3)}
    entry = ", ".join(f"{name}: {value:g}" for name, value in measured.items())
    lines = text.splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if line.startswith(f"  {device}:"))
    kept = lines[place].rstrip().removesuffix("}").partition(", measured:")[0]
    lines[place] = f"{kept}, measured: {{{entry}}}}}\n"
    return "".join(lines)


def names() -> list[str]:
    """The values of --on."""
    return [CPU, *table().devices]


def gpu(name: str) -> Gpu | None:
    """The GPU with a name of --on; None for the CPU.

    Raises:
        ConfigError: an unknown name.
    """
    if name not in names():
        raise ConfigError(f"--on {name}: no such device (allowed: {', '.join(names())})")
    return table().devices.get(name)


def choose(asked: str | None, config: MachineConfig) -> tuple[str, str]:
    """The name of the device that will run a configuration, and the reason; empty if it is named or is here.

    Args:
        asked: the value of --on; None: the device that machine.device selects here.
        config: machine.* of the run.

    Raises:
        ConfigError: an unknown name, or one that contradicts machine.device.
    """
    if asked is not None:
        if gpu(asked) is None and config.device == "cuda":
            raise ConfigError("--on cpu and machine.device=cuda: give one of them")
        if gpu(asked) is not None and config.device == "cpu":
            raise ConfigError(f"--on {asked} and machine.device=cpu: give one of them")
        return asked, ""
    if config.device == "cpu":
        return CPU, ""
    if model := machine.gpu_model():
        found = [name for name, known in table().devices.items() if known.is_called(model)]
        return (found[0], "") if found else (table().default, f"{model} is not in the table of devices")
    if config.device == "cuda":
        return table().default, "no GPU is here; --on names another one"
    return CPU, ""
