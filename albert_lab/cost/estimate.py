"""What runs will cost, told before they are made: sizes without building, time from what was measured here."""

import math
import shutil
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from albert_lab import paths
from albert_lab.config.compose import axes, expand, load
from albert_lab.config.schema import RunConfig
from albert_lab.cost import parameters
from albert_lab.errors import ConfigError
from albert_lab.runs import finetunings as downstream
from albert_lab.runs import results
from albert_lab.runs import run as runs
from albert_lab.studies import graph
from albert_lab.tasks.formats.race import LETTERS

if TYPE_CHECKING:
    from albert_lab.studies.sweep import PlannedPoint

# Weights and two moments in float32, in the two checkpoints that are kept.
CHECKPOINT_BYTES_PER_PARAMETER = 2 * 3 * 4
# Of what one core reaches in matrix products, the share that training reached on one thread at scale=laptop (measured,
# see DECISIONS.md). Used until a run was made here.
MEASURED_UTILISATION = 1 / 3
# Small enough that no BLAS shares a product among threads, which on a busy machine wait for each other.
MATRIX_SIZE = 96
# Measured, see DECISIONS.md.
MEMORY = (
    "Memory holds tensors alone. A process that trains on a CPU holds about 500 MiB besides, and more on more text:"
    " runs on 114 MB of it, with 80 MiB of tensors, came to 1.1 to 1.8 GiB."
)
WIDTH = 100  # of notes, in characters


@dataclass(frozen=True)
class Listing:
    """A table with notes below it, as text and as plain data."""

    rows: list[dict[str, Any]]
    notes: list[str]

    def as_text(self) -> str:
        """The table with thousands marked, and the notes, as wide as the terminal but not wider than is easily read."""
        header = list(dict.fromkeys(key for row in self.rows for key in row))
        body = [[_cell(row.get(key)) for key in header] for row in self.rows]
        are_text = [any(isinstance(row.get(key), str) for row in self.rows) for key in header]
        align = ["left" if is_text else "right" for is_text in are_text]
        table = tabulate(body, headers=header, tablefmt="simple", disable_numparse=True, colalign=align)
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        notes = [textwrap.fill(note, width, break_on_hyphens=False) for note in self.notes]
        return "\n".join([table, "", *notes]).rstrip()

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _size(config: RunConfig) -> dict[str, Any]:
    counts, flops = parameters.count_parameters(config), parameters.count_flops(config)
    return {
        "embeddings": counts.embeddings,
        "layers": counts.layers,
        "pooler": counts.pooler,
        "heads": counts.mlm_head + counts.pair_head,
        "total": counts.total,
        "train FLOPs/piece": round(flops.training),
        "inference FLOPs/piece": round(flops.inference),
        "train MiB": parameters.estimate_training_memory(config).total / 2**20,
        "inference MiB": parameters.estimate_inference_memory(config).total / 2**20,
    }


def configurations(overrides: Sequence[str]) -> dict[str, RunConfig]:
    """One configuration or a sweep of them, by a label of what differs.

    Raises:
        ConfigError: a configuration that does not fit.
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
    """Parameters, FLOPs and memory of one configuration or of a sweep of them.

    Raises:
        ConfigError: a configuration that does not fit.
    """
    rows = [{"configuration": label} | _size(config) for label, config in configurations(overrides).items()]
    notes = [
        "layers counts each shared block once; heads are those of pre-training. FLOPs count matrix products, a"
        " multiply-add as two, at the full length of the configuration.",
        MEMORY,
    ]
    return Listing(rows, notes)


def paper_counts() -> Listing:
    """Every parameter count that the paper prints, beside the exact ones of the released shapes."""
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
    """What the pre-training of one run takes: FLOPs, seconds, bytes of its checkpoints."""

    flops: float
    seconds: float
    disk_bytes: int


def price(item: "PlannedPoint", speed: float) -> Price:
    """What a point's run takes at so many FLOPs a second; of an arm its own part alone."""
    config, share = item.point.config, _own_share(item)
    disk = parameters.count_parameters(config).total * CHECKPOINT_BYTES_PER_PARAMETER
    if config.budget.unit == "seconds":
        seconds = config.budget.value * share
        return Price(seconds * speed, seconds, disk)
    flops = _tokens(config) * share * parameters.count_flops(config).training
    return Price(flops, flops / speed, disk)


def costs(planned: "Sequence[PlannedPoint]") -> Listing:
    """What each point of a sweep would cost: parameters, FLOPs, time, disk and memory; writes nothing."""
    from albert_lab.data.prepare import describe

    speed, source = flops_per_second()
    rows: list[dict[str, Any]] = []
    shown: dict[str, str] = {}
    is_row = {item.run.name for item in planned}
    total_seconds, total_disk = 0.0, 0
    for item, depth in _with_ancestors(planned):
        config = item.point.config
        words = item.point.words or "-"
        if shown.setdefault(item.run.name, words) != words:  # asked for by several rows, made once
            rows.append(
                {"point": f"{words} (the run of {shown[item.run.name]})", "seed": config.seed, "state": "shared"}
            )
            continue
        if item.state == "imported":
            rows.append({"point": f"{words} (no row: others start from it)", "seed": config.seed, "state": item.state})
            continue
        cost = price(item, speed)
        if item.state not in runs.FINISHED:
            total_seconds += cost.seconds
            total_disk += cost.disk_bytes
        rows.append(
            {
                "point": graph.branch(depth)
                + words
                + ("" if item.run.name in is_row else " (no row: others start from it)"),
                "seed": config.seed,
                "state": item.state,
                "parameters": parameters.count_parameters(config).total,
                "FLOPs/piece": round(parameters.count_flops(config).training),
                "FLOPs": f"{cost.flops:.1e}" if config.budget.unit != "seconds" else None,
                "training time": duration(cost.seconds),
                "disk MiB": cost.disk_bytes / 2**20,
                "memory MiB": parameters.estimate_training_memory(config).total / 2**20,
            }
        )
    data = {item.run.evaluation_set: describe(item.point.config) for item in planned}
    shards = sum(found["disk_bytes"] or 0 for found in data.values() if not found["is_prepared"])
    free = shutil.disk_usage(_existing(paths.home())).free
    tuned = finetuning_seconds(planned, speed)
    made = [row for row in rows if row["state"] not in ("shared", "imported")]
    notes = [
        f"{len(made)} {'run' if len(made) == 1 else 'runs'}. To make: {duration(total_seconds)} of training one after"
        f" another, {total_disk / 2**20:,.0f} MiB of checkpoints, {shards / 2**20:,.0f} MiB of prepared text"
        f" ({free / 2**20:,.0f} MiB are free).",
        f"Fine-tuning: {len(tuned)} to make, {duration(sum(tuned.values()))} at the full length of every example.",
        f"Time: {source}.",
        "Evaluation, checkpoints and the preparation of text come on top.",
        MEMORY,
    ]
    return Listing(rows, notes)


def finetuning_seconds(planned: "Sequence[PlannedPoint]", speed: float) -> dict[tuple[str, str, int], float]:
    """Seconds of each fine-tuning that is not done, by run, task and seed, at the length of its settings."""
    found = {}
    for item in {item.run.name: item for item in planned}.values():
        config = item.run.config
        flops = parameters.count_flops(config)
        for task, seed in downstream.missing(item.run, item.tasks.values(), item.seeds):
            settings = task.fitted(config)
            # A multiple-choice example is a sequence for each option.
            sequences = settings.batch_size * (len(LETTERS) if task.format.name == "race" else 1)
            trained = settings.steps * sequences * settings.max_sequence_length
            evaluated = settings.steps // settings.checkpoint_steps * (settings.dev_examples or 0)
            found[item.run.name, task.name, seed] = (
                trained * flops.training + evaluated * settings.max_sequence_length * flops.inference
            ) / speed
    return found


def _with_ancestors(planned: "Sequence[PlannedPoint]") -> "Iterator[tuple[PlannedPoint, int]]":
    """Each point, behind those of its ancestors that did not come yet, and how many ancestors it has."""
    rows = {item.run.name: item for item in planned}
    seen: set[str] = set()
    for item in planned:
        for depth, ancestor in enumerate(item.ancestors):
            if ancestor.run.name not in seen:
                yield rows.get(ancestor.run.name, ancestor), depth
            seen.add(ancestor.run.name)
        seen.add(item.run.name)
        yield item, len(item.ancestors)


def _own_share(item: "PlannedPoint") -> float:
    """The share of the budget that the run itself makes: what its trunk made is not made again."""
    start, budget = item.point.start, item.point.config.budget
    if start is None or start.keep != "training":
        return budget.stop_at
    return budget.stop_at - start.point.config.budget.stop_at


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _tokens(config: RunConfig) -> float:
    if config.budget.unit == "tokens":
        return config.budget.value
    return config.budget.value * config.batch_size * config.max_sequence_length


def flops_per_second() -> tuple[float, str]:
    """FLOPs a second that training reaches here, and how that is known."""
    if record := _newest_record():
        speed = record.training.tokens_per_second * record.train_flops_per_token
        return speed, f"from {speed / 1e9:,.1f} GFLOP/s, which the run {record.name} reached here"
    speed = _matrix_product_flops_per_second() * MEASURED_UTILISATION
    return speed, (
        f"from {speed / 1e9:,.1f} GFLOP/s, {MEASURED_UTILISATION:.0%} of what one core reaches here in float32 matrix"
        " products, as training at scale=laptop was measured to reach elsewhere; no run was made here yet"
    )


def _newest_record() -> results.RunRecord | None:
    files = paths.runs().glob(f"*/{results.RECORD}")
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        try:
            return results.read(file.parent)
        except ConfigError:  # of an earlier version, with other keys
            continue
    return None


def _matrix_product_flops_per_second() -> float:
    """Of one core: the fastest of many products, since a busy machine slows the others."""
    import numpy as np

    matrix = np.ones((MATRIX_SIZE, MATRIX_SIZE), dtype=np.float32)
    product = np.empty_like(matrix)
    fastest, started = math.inf, time.perf_counter()
    while (before := time.perf_counter()) < started + 0.2:
        np.matmul(matrix, matrix, out=product)
        fastest = min(fastest, time.perf_counter() - before)
    return 2 * MATRIX_SIZE**3 / fastest


def duration(seconds: float) -> str:
    """Seconds in the largest unit that fits."""
    for unit, length in (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} s"
