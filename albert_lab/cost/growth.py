"""The growth of the time of an optimizer step with the sizes of a configuration, next to that of its FLOPs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.cost import parameters, rounds
from albert_lab.cost.benchmark import Quartiles
from albert_lab.cost.listing import Listing
from albert_lab.cost.rounds import Candidate, Measured
from albert_lab.errors import ConfigError

# Each size with the multiples of its configured value at which a step is measured.
SIZES: dict[str, tuple[float, ...]] = {
    "batch_size": (0.25, 0.5, 1, 2),
    "max_sequence_length": (0.5, 1, 2, 4),
    "model.num_layers": (1, 2, 4, 8),
    "model.hidden_size": (0.5, 1, 2, 4),
    "embedding_size": (0.25, 0.5, 1, 2),
    "tokenizer.vocab_size": (0.5, 1, 2, 4),
}


@dataclass(frozen=True)
class GrowthPoint:
    """A step at one value of a size. Quantities that were not measured are None, with the reason in failure.

    time_ratio is relative to the first value of the same size, within a round; flops_ratio is that of training FLOPs.
    """

    size: str
    value: int
    tokens_per_step: int
    seconds_per_step: Quartiles | None
    time_ratio: Quartiles | None
    flops_ratio: float
    failure: str

    @property
    def time_over_flops(self) -> float | None:
        """The growth of the time over that of the FLOPs, from the first value."""
        return None if self.time_ratio is None else self.time_ratio.median / self.flops_ratio


@dataclass(frozen=True)
class Growth:
    """The points of all sizes, in order, and how they were measured."""

    points: tuple[GrowthPoint, ...]
    computed_with: str
    rounds: int

    def of(self, size: str) -> list[GrowthPoint]:
        """The points of one size."""
        return [point for point in self.points if point.size == size]

    @property
    def sizes(self) -> list[str]:
        """The sizes that were varied, in order."""
        return list(dict.fromkeys(point.size for point in self.points))

    @property
    def num_failed(self) -> int:
        """The number of points that could not be measured."""
        return sum(bool(point.failure) for point in self.points)

    def as_text(self) -> str:
        """A table of all points, with notes."""
        return Listing([_row(point) for point in self.points], self._notes()).as_text()

    def as_dict(self) -> dict[str, Any]:
        """The growth as plain data, in seconds."""
        return {"rounds": self.rounds, "points": [asdict(point) for point in self.points], "notes": self._notes()}

    def _notes(self) -> list[str]:
        failed = [f"{_name(point)} was not measured: {point.failure}." for point in self.points if point.failure]
        return [
            *failed,
            f"Medians over {self.rounds} rounds, quartiles in brackets; ratios to the first value of a size are taken"
            " within rounds.",
            f"Computed with: {self.computed_with or 'nothing'}.",
            "Time over FLOPs above 1: the time of a step grows faster than its work; below 1: a larger step uses the"
            " machine better.",
            *(_describe(self.of(size)) for size in self.sizes),
        ]


def measure(
    overrides: Sequence[str],
    *,
    sizes: Sequence[str],
    number: int,
    seconds: float,
    say: Callable[[str], None],
) -> Growth:
    """The time of a step at several values of each size; all values of one size are measured in the same rounds.

    Args:
        overrides: `key=value` texts of the configuration that is varied.
        sizes: the SIZES to vary.
        number: of rounds.
        seconds: the approximate duration of measuring a value in each round.
        say: receives progress lines.

    Raises:
        ConfigError: a size that is not one of SIZES, or an invalid configuration.
    """
    if unknown := [size for size in sizes if size not in SIZES]:
        raise ConfigError(f"--size={unknown[0]} is unknown (allowed: {', '.join(SIZES)}, runs)")
    base = load(overrides)
    points: list[GrowthPoint] = []
    computed: set[str] = set()
    for size in sizes:
        say(f"{size}:")
        values = _values(base, size)
        configs = [load([*overrides, f"{size}={value}"]) for value in values]
        measured = rounds.measure([Candidate(config) for config in configs], rounds=number, seconds=seconds, say=say)
        computed |= {f"{one.device}, {one.precision}, {one.threads} threads" for one in measured if one.device}
        points += [
            _point(size, value, config, one, configs[0], measured[0])
            for value, config, one in zip(values, configs, measured, strict=True)
        ]
    return Growth(tuple(points), "; ".join(sorted(computed)), number)


def _values(base: RunConfig, size: str) -> list[int]:
    content: Any = base
    for key in size.split("."):
        content = getattr(content, key)
    most = base.model.max_position_embeddings if size == "max_sequence_length" else math.inf
    return sorted({value for factor in SIZES[size] if 1 <= (value := round(factor * content)) <= most})


def _point(
    size: str, value: int, config: RunConfig, measured: Measured, first_config: RunConfig, first: Measured
) -> GrowthPoint:
    tokens, first_tokens = _tokens(config), _tokens(first_config)
    seconds = [tokens / turn.training for turn in measured.turns]
    first_seconds = [first_tokens / turn.training for turn in first.turns]
    pairs = zip(seconds, first_seconds, strict=True) if seconds and first_seconds else ()
    flops = parameters.count_flops(config).training / parameters.count_flops(first_config).training
    return GrowthPoint(
        size=size,
        value=value,
        tokens_per_step=tokens,
        seconds_per_step=Quartiles.of(seconds),
        time_ratio=Quartiles.of([own / other for own, other in pairs]),
        flops_ratio=flops * tokens / first_tokens,
        failure=measured.failure,
    )


def _tokens(config: RunConfig) -> int:
    return config.batch_size * config.max_sequence_length


def _row(point: GrowthPoint) -> dict[str, Any]:
    time, ratio = point.seconds_per_step, point.time_ratio
    return {
        "size": point.size,
        "value": point.value,
        "ms a step": time and f"{1000 * time.median:,.1f} [{1000 * time.low:,.1f}, {1000 * time.high:,.1f}]",
        "times the first": ratio and f"{ratio.median:.2f}",
        "FLOPs times the first": f"{point.flops_ratio:.2f}",
        "time over FLOPs": None if point.time_over_flops is None else f"{point.time_over_flops:.2f}",
    }


def _describe(points: Sequence[GrowthPoint]) -> str:
    """One sentence: the exponent of the time in a size, from its first to its last measured value."""
    found = [(point.value, point.time_ratio.median) for point in points if point.time_ratio]
    size = points[0].size
    if len(found) < 2:
        return f"{size}: too few values were measured."
    (first, _), (last, ratio) = found[0], found[-1]
    exponent = math.log(ratio) / math.log(last / first)
    return f"{size}: from {first:,} to {last:,} the time of a step grows with the power {exponent:.2f} of it."


def _name(point: GrowthPoint) -> str:
    return f"{point.size}={point.value}"
