"""The cost and speed of configurations: counted, estimated and measured, in two tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from albert_lab.config.schema import RunConfig
from albert_lab.cost import counts, rounds
from albert_lab.cost.listing import Listing
from albert_lab.cost.rounds import Measured
from albert_lab.units import Bytes


@dataclass(frozen=True)
class Quartiles:
    """A quantity over rounds: its median, the quartiles around it, and all values."""

    median: float
    low: float
    high: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> "Quartiles | None":
        if not values:
            return None
        low, median, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
        return cls(median, low, high, tuple(values))


@dataclass(frozen=True)
class BenchmarkRow:
    """One configuration. Quantities that were not measured are None, with the reason in failure.

    Speed-ups (relative to the first line) and utilisation (training FLOPs over those of matrix products) are ratios
    within a round.
    """

    configuration: str
    parameters: int
    train_flops_per_token: float
    inference_flops_per_token: float
    estimated_memory_bytes: int
    measured_memory_bytes: int | None
    device: str | None
    precision: str | None
    threads: int | None
    tokens_per_second: Quartiles | None
    speedup: Quartiles | None
    inference_tokens_per_second: Quartiles | None
    inference_speedup: Quartiles | None
    matrix_product_flops_per_second: Quartiles | None
    utilisation: Quartiles | None
    failure: str


@dataclass(frozen=True)
class Benchmark:
    """The rows of a benchmark, and its settings."""

    lines: tuple[BenchmarkRow, ...]
    rounds: int

    @property
    def num_failed(self) -> int:
        return sum(bool(line.failure) for line in self.lines)

    def as_text(self) -> str:
        sizes = Listing(list(map(_sizes, self.lines)), [])
        speeds = Listing([_speeds(line, self.lines[0].configuration) for line in self.lines], self._notes())
        return sizes.as_text() + "\n\n" + speeds.as_text()

    def as_dict(self) -> dict[str, Any]:
        return {"rounds": self.rounds, "rows": [asdict(line) for line in self.lines], "notes": self._notes()}

    def _notes(self) -> list[str]:
        used = {
            f"{line.device}, {line.precision}, {line.threads} thread{'' if line.threads == 1 else 's'}"
            for line in self.lines
            if line.device
        }
        failed = [f"{line.configuration} was not measured: {line.failure}." for line in self.lines if line.failure]
        return [
            *failed,
            f"Medians over {self.rounds} rounds, quartiles in brackets. A round measures each configuration once, in a"
            " new random order; ratios are taken within rounds.",
            f"Computed with: {'; '.join(sorted(used)) or 'nothing'}.",
            "Training: whole optimizer steps on random ids at full length, masked as configured. Inference: encoder and"
            " heads, without gradients.",
            "Utilisation: FLOPs of training over those of torch.matmul, in the same precision, threads and round.",
            "Memory of training: estimated is what tensors take by formula; measured is the peak of the process"
            " beyond Python and torch.",
        ]


def run(configs: Mapping[str, RunConfig], *, number: int, seconds: float, say: Callable[[str], None]) -> Benchmark:
    """The cost and speed of each configuration; the measurements are interleaved.

    Args:
        configs: the configurations by label; the first is the reference of the others.
    """
    measured = rounds.measure_speeds(list(configs.values()), rounds=number, seconds=seconds, say=say)
    lines = [
        _line(label, config, speed, measured[0])
        for (label, config), speed in zip(configs.items(), measured, strict=True)
    ]
    return Benchmark(tuple(lines), number)


def _line(label: str, config: RunConfig, result: Measured, first: Measured) -> BenchmarkRow:
    if result.device:  # estimate for the device that was measured
        measured = {
            "device": result.device,
            "precision": result.precision,
            "micro_batch_size": result.micro_batch_size,
        }
        config = config.model_copy(update={"machine": config.machine.model_copy(update=measured)})
    flops, measurements = counts.count_flops(config), result.measurements
    pairs = list(zip(measurements, first.measurements, strict=True)) if measurements and first.measurements else []
    return BenchmarkRow(
        configuration=label,
        parameters=counts.count_parameters(config).total,
        train_flops_per_token=flops.training,
        inference_flops_per_token=flops.inference,
        estimated_memory_bytes=counts.estimate_training_memory(config).total,
        measured_memory_bytes=result.peak_memory_bytes,
        device=result.device,
        precision=result.precision,
        threads=result.threads,
        tokens_per_second=Quartiles.of([measurement.training for measurement in measurements]),
        speedup=Quartiles.of([own.training / other.training for own, other in pairs]),
        inference_tokens_per_second=Quartiles.of([measurement.inference for measurement in measurements]),
        inference_speedup=Quartiles.of([own.inference / other.inference for own, other in pairs]),
        matrix_product_flops_per_second=Quartiles.of([measurement.matrix_products for measurement in measurements]),
        utilisation=Quartiles.of(
            [measurement.training * flops.training / measurement.matrix_products for measurement in measurements]
        ),
        failure=result.failure,
    )


def _sizes(line: BenchmarkRow) -> dict[str, Any]:
    measured = line.measured_memory_bytes
    return {
        "configuration": line.configuration,
        "parameters": line.parameters,
        "train FLOPs/token": round(line.train_flops_per_token),
        "inference FLOPs/token": round(line.inference_flops_per_token),
        "estimated memory": Bytes(line.estimated_memory_bytes),
        "measured memory": None if measured is None else Bytes(measured),
    }


def _speeds(line: BenchmarkRow, first: str) -> dict[str, Any]:
    return {
        "configuration": line.configuration,
        "training tokens/s": _shown(line.tokens_per_second, ",.0f"),
        f"over {first}": _shown(line.speedup, ".2f"),
        "inference tokens/s": _shown(line.inference_tokens_per_second, ",.0f"),
        f"inference over {first}": _shown(line.inference_speedup, ".2f"),
        "matmul GFLOP/s": _shown(line.matrix_product_flops_per_second, ",.0f", 1e-9),
        "utilisation %": _shown(line.utilisation, ".1f", 100),
    }


def _shown(quartiles: Quartiles | None, form: str, factor: float = 1.0) -> str | None:
    if quartiles is None:
        return None
    median, low, high = (format(factor * value, form) for value in (quartiles.median, quartiles.low, quartiles.high))
    return f"{median} [{low}, {high}]"
