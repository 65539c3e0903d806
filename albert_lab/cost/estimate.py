"""The estimated cost of a run before it is made: sizes without building it, time from a rate."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from albert_lab.config.compose import axes, expand, load
from albert_lab.config.schema import RunConfig
from albert_lab.cost import parameters
from albert_lab.cost.listing import Listing

# Weights and two moments in float32, in each of the two checkpoints that are kept.
CHECKPOINT_BYTES_PER_PARAMETER = 2 * 3 * 4
# The speed of training on one thread at scale=laptop over that of matrix products on one core (measured, see
# DECISIONS.md). Used until a run was made here.
MEASURED_UTILISATION = 1 / 3
# So small that no BLAS divides a product among threads, which would wait for each other on a busy machine.
MATRIX_SIZE = 80
# Measured, see DECISIONS.md.
MEMORY = (
    "Memory is that of tensors alone. A process that trains on a CPU takes about 500 MiB more, and more with more text:"
    " runs on 114 MB of it, with 80 MiB of tensors, came to 1.1 to 1.8 GiB."
)


def _size(config: RunConfig) -> dict[str, Any]:
    counts, flops = parameters.count_parameters(config), parameters.count_flops(config)
    return {
        "embeddings": counts.embeddings,
        "layers": counts.layers,
        "pooler": counts.pooler,
        "heads": counts.mlm_head + counts.pair_head,
        "total": counts.total,
        "train FLOPs/token": round(flops.training),
        "inference FLOPs/token": round(flops.inference),
        "train MiB": parameters.estimate_training_memory(config).total / 2**20,
        "inference MiB": parameters.estimate_inference_memory(config).total / 2**20,
    }


def configurations(overrides: Sequence[str]) -> dict[str, RunConfig]:
    """One configuration or a sweep, by a label of the differing settings.

    Raises:
        ConfigError: an invalid configuration.
    """
    given = axes(overrides)
    swept = [key for key, values in given.items() if len(values) > 1]
    found = {}
    for point in expand(given):
        config = load([f"{key}={value}" for key, value in point.items()])
        label = " ".join(f"{key}={point[key]}" for key in swept)
        found[label or f"{config.model.name} E={config.embedding_size} {config.sharing.name}"] = config
    return found


def sizes(overrides: Sequence[str]) -> Listing:
    """Parameters, FLOPs and memory of one configuration or of a sweep.

    Raises:
        ConfigError: an invalid configuration.
    """
    rows = [{"configuration": label} | _size(config) for label, config in configurations(overrides).items()]
    notes = [
        "layers counts each shared block once; heads are those of pre-training. FLOPs count matrix products, a"
        " multiply-add as two, at the full length of the configuration.",
        MEMORY,
    ]
    return Listing(rows, notes)


def paper_counts() -> Listing:
    """Every parameter count that the paper prints, next to the exact ones of the released shapes."""
    rows = []
    for row in parameters.paper_rows():
        counts = parameters.count_parameters(load(row.overrides))
        rows.append(
            {
                "model": row.label,
                "paper": row.paper,
                "embeddings + layers": counts.encoder,
                "with pooler": counts.with_pooler,
                "with pooler and heads": counts.total,
            }
        )
    return Listing(rows, [parameters.paper_footnote()])


@dataclass(frozen=True)
class Price:
    """The cost of the pre-training of one run: FLOPs, seconds, bytes of its checkpoints."""

    flops: float
    seconds: float
    disk_bytes: int


def price(config: RunConfig, speed: float, share: float = 1.0, fill: float = 1.0) -> Price:
    """The cost of a share of a run's budget.

    Args:
        config: of the run.
        speed: FLOP/s of the device, including padding.
        share: of the budget.
        fill: share of the positions of a batch that are tokens. Padding counts in time but not in FLOPs.
    """
    disk = parameters.count_parameters(config).total * CHECKPOINT_BYTES_PER_PARAMETER
    if config.budget.unit == "seconds":
        seconds = config.budget.value * share
        return Price(seconds * speed * fill, seconds, disk)
    flops = _tokens(config, fill) * share * parameters.count_training_flops(config)
    return Price(flops, flops / fill / speed, disk)


def _tokens(config: RunConfig, fill: float) -> float:
    if config.budget.unit == "tokens":
        return config.budget.value
    return config.budget.value * config.batch_size * config.max_sequence_length * fill


def matrix_product_flops_per_second() -> float:
    """FLOP/s of one core, from the fastest of many products, since a busy machine slows the others."""
    import numpy as np

    matrix = np.ones((MATRIX_SIZE, MATRIX_SIZE), dtype=np.float32)
    product = np.empty_like(matrix)
    fastest, started = math.inf, time.perf_counter()
    while (before := time.perf_counter()) < started + 0.2:
        np.matmul(matrix, matrix, out=product)
        fastest = min(fastest, time.perf_counter() - before)
    return 2 * MATRIX_SIZE**3 / fastest


def duration(seconds: float) -> str:
    """Seconds as text in the largest unit that fits."""
    for unit, length in (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} s"
