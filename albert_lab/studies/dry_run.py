"""The cost of the runs of a study before they are made; writes nothing."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from albert_lab import paths
from albert_lab.cost import parameters
from albert_lab.cost.estimate import MEMORY, Price, duration
from albert_lab.cost.estimate import price as price_of
from albert_lab.cost.listing import Listing
from albert_lab.runs import ancestry, regime, results
from albert_lab.studies import rates, workload
from albert_lab.studies.planning import PlannedPoint
from albert_lab.studies.rates import Rates


def price(item: PlannedPoint, known: Rates) -> Price:
    """The price of a point's run on a device; for an arm, without the part of its trunk."""
    config = item.point.config
    # Processes on one CPU share its cores.
    speed = known.of(config) * (config.machine.processes if known.gpu else 1)
    return price_of(config, speed, workload.own_share(item.point), known.fill(config))


def costs(planned: Sequence[PlannedPoint], on: str | None = None) -> Listing:
    """The cost of each point of a sweep: parameters, FLOPs, time, disk and memory; writes nothing.

    Args:
        planned: the points.
        on: the device, a name of cost/devices.yaml or cpu; None: the one that the configuration selects here.

    Raises:
        ConfigError: no such device.
    """
    from albert_lab.data.prepare import describe

    known = rates.choose(on, planned[0].point.config)
    rows: list[dict[str, Any]] = []
    shown: dict[str, str] = {}
    is_row = {item.run.name for item in planned}
    total_seconds, total_disk = 0.0, 0
    for item, depth in _with_ancestors(planned):
        config = item.point.config
        words = item.point.words or "-"
        if shown.setdefault(item.run.name, words) != words:  # several rows ask for this run, which is made once
            rows.append(
                {"point": f"{words} (the run of {shown[item.run.name]})", "seed": config.seed, "state": "shared"}
            )
            continue
        if item.state == "imported":
            rows.append({"point": f"{words} (no row: others start from it)", "seed": config.seed, "state": item.state})
            continue
        cost = price(item, known)
        if item.lacks_pretraining:
            total_seconds += cost.seconds
            total_disk += cost.disk_bytes
        rows.append(
            {
                "point": ancestry.branch(depth)
                + words
                + ("" if item.run.name in is_row else " (no row: others start from it)"),
                "seed": config.seed,
                "state": item.state,
                "parameters": parameters.count_parameters(config).total,
                "FLOPs/token": round(parameters.count_training_flops(config)),
                "FLOPs": f"{cost.flops:.1e}" if config.budget.unit != "seconds" else None,
                "training time": duration(cost.seconds),
                "disk MiB": cost.disk_bytes / 2**20,
                "memory MiB": parameters.estimate_training_memory(known.there(config)).total / 2**20,
            }
        )
    configs = {item.run.evaluation_set: item.point.config for item in planned}
    data = {evaluation_set: describe(config) for evaluation_set, config in configs.items()}
    shards = sum(found["disk_bytes"] or 0 for found in data.values() if not found["is_prepared"])
    free = shutil.disk_usage(_existing(paths.home())).free
    tuned = finetuning_seconds(planned, known)
    made = [row for row in rows if row["state"] not in ("shared", "imported")]
    notes = [
        f"{len(made)} {'run' if len(made) == 1 else 'runs'}. To make: {duration(total_seconds)} of training one after"
        f" another, {total_disk / 2**20:,.0f} MiB of checkpoints, {shards / 2**20:,.0f} MiB of prepared text"
        f" ({free / 2**20:,.0f} MiB are free).",
        f"Fine-tuning: {len(tuned)} to make, {duration(sum(tuned.values()))} at the full length of every example.",
        f"Time: {known.source(item.point.config for item in planned)}.",
        "FLOPs exclude padding if an earlier run on such text measured its share; time includes it.",
        "Evaluation, checkpoints and the preparation of text are not included.",
        MEMORY,
    ]
    return Listing(rows, notes)


def regime_of(planned: Sequence[PlannedPoint]) -> Listing:
    """The regime of a sweep next to the paper's: as recorded for finished runs, as configured for others."""
    from albert_lab.data.prepare import describe

    text: dict[str, int | None] = {}
    found = []
    for item in {item.run.name: item for item in planned}.values():
        if record := results.read(item.run.folder):
            found.append(regime.of_record(record))
            continue
        key, config = item.run.evaluation_set, item.point.config
        if key not in text:
            # Cut documents leave an unknown part of the text out of a pass.
            text[key] = None if config.corpus.document_tokens else describe(config)["num_tokens"]
        found.append(regime.of_config(config, text[key]))
    listing = regime.listing(regime.together(found))
    return replace(listing, notes=[*listing.notes, *regime.too_small(item.point.config for item in planned)])


def finetuning_seconds(planned: Sequence[PlannedPoint], known: Rates) -> dict[tuple[str, str, int], float]:
    """Seconds of each fine-tuning that is not done, by run, task and seed, at the length of its settings."""
    return {
        (item.run.name, task, seed): flops / known.of(item.run.config)
        for item in {item.run.name: item for item in planned if not item.is_recorded}.values()
        for (task, seed), flops in workload.finetuning_flops(item.run, item.tasks.values(), item.seeds).items()
    }


def _with_ancestors(planned: Sequence[PlannedPoint]) -> Iterator[tuple[PlannedPoint, int]]:
    """Each point with its number of ancestors, after those ancestors that were not yielded before."""
    rows = {item.run.name: item for item in planned}
    seen: set[str] = set()
    for item in planned:
        for depth, ancestor in enumerate(item.ancestors):
            if ancestor.run.name not in seen:
                yield rows.get(ancestor.run.name, ancestor), depth
            seen.add(ancestor.run.name)
        seen.add(item.run.name)
        yield item, len(item.ancestors)


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
