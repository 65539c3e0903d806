"""The time of training on a device: its table of peaks, the speeds of finished runs, and the price of a run."""

import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from omegaconf import OmegaConf
from pydantic import Field

from albert_lab import machine
from albert_lab.config.schema import RunConfig
from albert_lab.config.training import MachineConfig
from albert_lab.cost import capacity
from albert_lab.cost.counts import count_parameters, count_training_flops
from albert_lab.errors import ConfigError
from albert_lab.record import Record

CPU = "cpu"
DEVICES = Path(__file__).with_name("devices.yaml")
# A run predicts the speed of runs whose steps are larger or smaller by at most this factor.
_NEAR = 8.0
_USABLE_SHARE = 0.9  # of a GPU's memory
# Weights and two moments in float32, in each of the two checkpoints that are kept.
_CHECKPOINT_BYTES_PER_PARAMETER = 2 * 3 * 4
# The speed of training on one thread at scale=laptop over that of matrix products on one core (measured, see
# DECISIONS.md), and the hidden size there. Used until a run was trained here.
MEASURED_UTILISATION = 1 / 3
_MEASURED_AT = 72
# So small that no BLAS divides a product among threads, which would wait for each other on a busy machine.
MATRIX_SIZE = 80


class Gpu(Record):
    """A GPU: peaks of dense matrix products (TFLOP/s), memory (GiB), and the part of its name that drivers use.

    measured: the share of the peak that training at scale=gpu reaches, by precision.
    """

    title: str
    names: tuple[str, ...]
    memory: float
    bf16: float | None
    fp16: float | None = None
    fp32: float
    measured: dict[str, float] = Field(default={})

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
        return self.measured.get(precision, devices().assumed_utilisation[precision])

    def is_called(self, name: str) -> bool:
        """Whether it is the device that torch or its driver calls by that name."""
        return any(re.search(rf"\b{re.escape(part)}\b", name, re.IGNORECASE) for part in self.names)


class _Devices(Record):
    assumed_utilisation: dict[str, float]
    default: str
    devices: dict[str, Gpu]


@cache
def devices() -> _Devices:
    return _Devices.model_validate(OmegaConf.to_container(OmegaConf.load(DEVICES)))


def find_gpu(name: str) -> Gpu | None:
    """The GPU with a name of --on; None for the CPU.

    Raises:
        ConfigError: an unknown name.
    """
    known = [CPU, *devices().devices]
    if name not in known:
        raise ConfigError(f"--on {name}: no such device (allowed: {', '.join(known)})")
    return devices().devices.get(name)


def choose_device(asked: str | None, config: MachineConfig) -> tuple[str, str]:
    """The name of the device that will run a configuration, and the reason; empty if it is named or is here.

    Args:
        asked: the value of --on; None: the device that machine.device selects here.

    Raises:
        ConfigError: an unknown name, or one that contradicts machine.device.
    """
    if asked is not None:
        if config.device == ("cuda" if find_gpu(asked) is None else "cpu"):
            raise ConfigError(f"--on {asked} and machine.device={config.device}: give one of them")
        return asked, ""
    if config.device == "cpu":
        return CPU, ""
    if model := machine.gpu_model():
        names = [name for name, known in devices().devices.items() if known.is_called(model)]
        return (names[0], "") if names else (devices().default, f"{model} is not in the table of devices")
    if config.device == "cuda":
        return devices().default, "no GPU is here; --on names another one"
    return CPU, ""


@dataclass(frozen=True)
class Speed:
    """The speed of a finished run, and where it was reached.

    Attributes:
        flops_per_second: of one process, padding included.
        padding_share: the share of positions that are no tokens.
        device: cpu or cuda.
        devices: the name of the device of each process.
        precision: of its forward passes.
    """

    config: RunConfig
    flops_per_second: float
    padding_share: float
    device: str
    devices: tuple[str, ...]
    precision: str

    @cached_property
    def step_flops(self) -> float:
        return _step_flops(self.config)


@dataclass(frozen=True)
class Rates:
    """FLOP/s of training on one device, padding included, and the share of tokens in batches.

    Attributes:
        device: a name that --on takes.
        why: the reason for this device, if neither the user nor the machine determines it.
        speeds: of finished runs, the newest first.
    """

    device: str
    why: str = ""
    speeds: tuple[Speed, ...] = field(default=(), repr=False)

    @property
    def gpu(self) -> Gpu | None:
        return find_gpu(self.device)

    def of(self, config: RunConfig) -> float:
        """FLOP/s of one process that trains a configuration, from runs of similar size on such a device.

        Small matrices are slower, so it is interpolated between the hidden sizes of such runs, with the fastest run of
        each: a busy machine slows the others. Below the smallest it is in proportion to the hidden size: four layers of
        24, 36, 48 and 72 units trained on one core at 19, 27, 37 and 51 GFLOP/s. Without such a run, it is the assumed
        rate, or that of the fastest run of any size if this is higher.
        """
        own, size, hidden = self._own(config.machine), _step_flops(config), config.model.hidden_size
        near = [run for run in own if 1 / _NEAR <= run.step_flops / size <= _NEAR]
        if not near:
            others = (run.flops_per_second * min(1.0, hidden / run.config.model.hidden_size) for run in own)
            return max([self.assumed(config), *others])
        fastest: dict[int, float] = {}
        for run in near:
            width = run.config.model.hidden_size
            fastest[width] = max(run.flops_per_second, fastest.get(width, 0.0))
        widths, speeds = zip((0, 0.0), *sorted(fastest.items()), strict=True)
        return float(np.interp(hidden, widths, speeds))

    def fill(self, config: RunConfig) -> float:
        """The share of positions that are tokens, from the newest run on such text; 1 if there is none."""
        same = (run for run in self.speeds if _text(run.config) == _text(config))
        return next((1 - run.padding_share for run in same), 1.0)

    def assumed(self, config: RunConfig) -> float:
        if self.gpu is None:
            share = MEASURED_UTILISATION * min(1.0, config.model.hidden_size / _MEASURED_AT)
            return self._measured_here * share
        precision = self.gpu.precision(config.machine.precision)
        return self.gpu.peak(precision) * self.gpu.share(precision)

    def there(self, config: RunConfig) -> RunConfig:
        """The configuration with the open settings of machine.* resolved for the device."""
        update: dict[str, object] = {"device": "cpu"}
        if self.gpu is not None:
            precision = self.gpu.precision(config.machine.precision)
            update = {"device": "cuda", "precision": precision}
            if config.machine.micro_batch_size == "auto":
                usable = int(_USABLE_SHARE * self.gpu.memory * 2**30)
                processes = config.machine.processes
                update["micro_batch_size"] = capacity.micro_batch_size(config, "cuda", precision, processes, usable)
        return config.model_copy(update={"machine": config.machine.model_copy(update=update)})

    def source(self, configs: Iterable[RunConfig]) -> str:
        """The source of the rates of some configurations, as text for the user."""
        chosen = list({_step_flops(config): config for config in configs}.values())  # one of each size
        speeds = sorted(self.of(config) / 1e9 for config in chosen)
        shown = f"{speeds[0]:,.1f}" + (f" to {speeds[-1]:,.1f}" if speeds[-1] > 1.05 * speeds[0] else "")
        machine = chosen[0].machine
        if own := self._own(machine):
            how = f"from {len(own)} runs on such a device, the fastest of each hidden size"
        elif self.gpu is None:
            how = (
                f"{MEASURED_UTILISATION:.0%} of what one core reaches here in float32 matrix products from"
                f" {_MEASURED_AT} hidden units up, and less in proportion below, as training was measured to reach"
                " elsewhere; no run was trained here yet"
            )
        else:
            precision = self.gpu.precision(machine.precision)
            is_measured = precision in self.gpu.measured
            how = (
                f"{self.gpu.share(precision):.0%} of its peak of {self.gpu.peak(precision) / 1e12:,.0f} TFLOP/s in"
                f" {precision}, {'measured at scale=gpu' if is_measured else 'an assumption'} that small models"
                " do not reach; no run was trained on one yet"
            )
        title = "the CPU of this machine" if self.gpu is None else self.gpu.title
        return f"on {title}{f' ({self.why})' if self.why else ''}, {shown} GFLOP/s: {how}"

    @cached_property
    def _measured_here(self) -> float:
        return matrix_product_flops_per_second()

    def _own(self, config: MachineConfig) -> list[Speed]:
        return [
            run
            for run in self.speeds
            if (run.device == "cpu" if self.gpu is None else any(map(self.gpu.is_called, run.devices)))
            and config.precision in ("auto", run.precision)
        ]


def matrix_product_flops_per_second() -> float:
    """FLOP/s of one core, from the fastest of many products, since a busy machine slows the others."""
    matrix = np.ones((MATRIX_SIZE, MATRIX_SIZE), dtype=np.float32)
    product = np.empty_like(matrix)
    fastest, started = math.inf, time.perf_counter()
    while (before := time.perf_counter()) < started + 0.2:
        np.matmul(matrix, matrix, out=product)
        fastest = min(fastest, time.perf_counter() - before)
    return 2 * MATRIX_SIZE**3 / fastest


def _step_flops(config: RunConfig) -> float:
    return count_training_flops(config) * config.batch_size * config.max_sequence_length


def _text(config: RunConfig) -> tuple[object, ...]:
    corpus = config.corpus
    return corpus.name, corpus.documents, config.max_sequence_length, config.short_sequence_probability


@dataclass(frozen=True)
class Price:
    """The cost of the pre-training of one run: FLOPs, seconds, bytes of its checkpoints."""

    flops: float
    seconds: float
    disk_bytes: int


def price(config: RunConfig, speed: float, share: float = 1.0, fill: float = 1.0) -> Price:
    """The cost of a share of a run's budget.

    Args:
        speed: FLOP/s of the device, including padding.
        fill: share of the positions of a batch that are tokens. Padding counts in time but not in FLOPs.
    """
    disk = count_parameters(config).total * _CHECKPOINT_BYTES_PER_PARAMETER
    unit, amount = config.budget.unit, config.budget.value * share
    if unit == "seconds":
        return Price(amount * speed * fill, amount, disk)
    tokens = amount if unit == "tokens" else amount * config.batch_size * config.max_sequence_length * fill
    flops = tokens * count_training_flops(config)
    return Price(flops, flops / fill / speed, disk)
