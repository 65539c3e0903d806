"""The cost of the runs of a plan before they are trained: FLOPs, seconds and disk; writes nothing."""

import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from albert_lab import paths
from albert_lab.cost import counts, rates
from albert_lab.cost.listing import Listing
from albert_lab.cost.rates import Price, Rates
from albert_lab.runs import finetunings
from albert_lab.runs.speeds import choose_rates
from albert_lab.studies.plan import Plan, PlannedPoint, family, lines_to_pretrain
from albert_lab.tasks.settings import TaskSettings
from albert_lab.tasks.task import TaskConfig
from albert_lab.tasks.used_data import count_examples
from albert_lab.units import Bytes, Seconds, duration, size

# FLOP/s that convert a budget in seconds into FLOPs where only proportions matter.
_ASSUMED_SPEED = 2e10


def price(item: PlannedPoint, known: Rates) -> Price:
    """The price of a point's pre-training on a device, without the part of a training that it continues."""
    config = item.point.config
    # Processes on one CPU share its cores.
    speed = known.of(config) * (config.machine.processes if known.gpu else 1)
    return rates.price(config, speed, _own_share(item), known.fill(config))


def _own_share(item: PlannedPoint) -> float:
    start, stop_at = item.point.start, item.point.config.budget.stop_at
    if start is None or start.keep != "training":
        return stop_at
    return stop_at - start.point.config.budget.stop_at


def finetuning_flops(item: PlannedPoint) -> dict[tuple[str, int], float]:
    """FLOPs of each fine-tuning that is to be made, by task and seed, at the full length of every example."""
    flops_of = {}
    flops = counts.count_flops(item.run.config)
    for task, seed in finetunings.with_starts(item.run, item.missing):
        settings = task.fitted(item.run.config)
        evaluations = math.ceil(settings.steps / settings.checkpoint_steps)
        trained, evaluated = settings.steps * settings.batch_size, evaluations * _dev_examples(task, settings)
        # A multiple-choice example is a sequence for each option.
        tokens = task.format.sequences * settings.max_sequence_length
        flops_of[task.name, seed] = tokens * (trained * flops.training + evaluated * flops.inference)
    return flops_of


def _dev_examples(task: TaskConfig, settings: TaskSettings) -> int:
    """The number of dev examples that each evaluation scores; 0 if it is not known yet."""
    if (available := task.official_examples.get("dev")) is None:
        available = count_examples(task, paths.tasks_data(), "dev")
    return min(available, settings.dev_examples or available)


@dataclass(frozen=True)
class Cost:
    """The cost of runs and fine-tunings that are not finished."""

    runs: int = 0
    shared: int = 0
    finished: int = 0
    finetunings: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    finetuning_seconds: float = 0.0
    disk_bytes: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def all_seconds(self) -> float:
        return self.seconds + self.finetuning_seconds

    def as_row(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "shared": self.shared,
            "finished": self.finished,
            "FLOPs": f"{self.flops:.1e}",
            "training time": Seconds(self.seconds),
            "fine-tunings": self.finetunings,
            "fine-tuning time": Seconds(self.finetuning_seconds),
            "time in all": Seconds(self.all_seconds),
            "disk": Bytes(self.disk_bytes),
        }


def cost_of(points: Sequence[PlannedPoint], known: Rates, seen: set[str] | None = None) -> Cost:
    """The cost of points with the runs that they start from, each run and fine-tuning once.

    Those in seen are not counted again; the others are added to it.
    """
    seen = set() if seen is None else seen
    runs = family(points)
    to_pretrain = {item.run.name for line in lines_to_pretrain(points) for item in line}
    cost = Cost(shared=len(points) - len({item.run.name for item in points}))
    for name, item in runs.items():
        if name in seen:
            cost += Cost(shared=1)
        elif name not in to_pretrain:
            cost += Cost(runs=1, finished=1)
        else:
            its = price(item, known)
            cost += Cost(runs=1, flops=its.flops, seconds=its.seconds, disk_bytes=its.disk_bytes)
        seen.add(name)
        for (task, seed), flops in finetuning_flops(item).items():
            key = f"{name}, {task}, seed {seed}"
            if key not in seen:
                cost += Cost(finetunings=1, finetuning_seconds=flops / known.of(item.run.config))
            seen.add(key)
    return cost


def positions(todo: Sequence[PlannedPoint], jobs: int) -> list[str]:
    """The place of each run in a study for its progress bar, as NUMBER/COUNT:FINETUNING:LATER.

    Both kinds of work are in units of the run's whole budget, whose seconds its process measures; later work is
    divided by the number of jobs.
    """
    budgets = [rates.price(item.run.config, _ASSUMED_SPEED).flops for item in todo]
    tuned = [sum(finetuning_flops(item).values()) for item in todo]
    works = [
        tuning + (budget * _own_share(item) if item.lacks_pretraining else 0.0)
        for item, budget, tuning in zip(todo, budgets, tuned, strict=True)
    ]
    return [
        f"{number}/{len(todo)}:{tuning / budget:.4g}:{sum(works[number:]) / jobs / budget:.4g}"
        for number, (budget, tuning) in enumerate(zip(budgets, tuned, strict=True), 1)
    ]


def costs(plan: Plan, on: str | None = None) -> Listing:
    """The cost of each point: parameters, FLOPs, time, disk and memory.

    Args:
        on: the device, a name of cost/devices.yaml or cpu; None: the one that the configuration selects here.

    Raises:
        ConfigError: no such device.
    """
    known = choose_rates(on, plan.config)
    rows: list[dict[str, Any]] = []
    shown: dict[str, str] = {}
    is_row = {item.run.name for item in plan.points}
    for item in _with_ancestors(plan):
        label, is_other = item.point.label or "-", item.run.name not in is_row
        row = {"seed": item.point.config.seed, "state": item.state}
        if shown.setdefault(item.run.name, label) != label:  # several rows ask for this run, which is trained once
            rows.append({"point": f"{label} (the run of {shown[item.run.name]})"} | row | {"state": "shared"})
            continue
        name = f"{label} (no row: others start from it)" if is_other else label
        if item.state == "imported":
            rows.append({"point": name} | row)
            continue
        rows.append({"point": name} | row | _columns(item, known))
    total = cost_of(plan.points, known)
    free = shutil.disk_usage(_existing(paths.home())).free
    number = sum(row["state"] not in ("shared", "imported") for row in rows)
    notes = [
        f"{number} {'run' if number == 1 else 'runs'}. To train: {duration(total.seconds)}, one after another;"
        f" {size(total.disk_bytes)} of checkpoints ({size(free)} are free).",
        f"Fine-tunings to train: {total.finetunings}, {duration(total.finetuning_seconds)} at the full length of every"
        " example.",
        f"Time: {known.source(item.point.config for item in plan.points)}.",
        "FLOPs exclude padding if an earlier run on such text measured its share; time includes it.",
        "Evaluation, checkpoints and the preparation of text are not included.",
        counts.MEMORY,
    ]
    return Listing(rows, notes)


def by_row(listing: Listing) -> Listing:
    """The costs of a plan with one line for all seeds of a row that have the same cost and state."""
    seeds: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for row in listing.rows:
        seeds.setdefault(tuple((key, value) for key, value in row.items() if key != "seed"), []).append(row["seed"])
    rows = [{key[0][0]: key[0][1], "seeds": _in_words(of), **dict(key[1:])} for key, of in seeds.items()]
    return replace(listing, rows=rows)


def _in_words(seeds: Sequence[int]) -> str:
    is_range = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if is_range else ", ".join(map(str, seeds))


def _columns(item: PlannedPoint, known: Rates) -> dict[str, Any]:
    config, cost = item.point.config, price(item, known)
    return {
        "parameters": counts.count_parameters(config).total,
        "FLOPs/token": round(counts.count_training_flops(config)),
        "FLOPs": f"{cost.flops:.1e}" if config.budget.unit != "seconds" else None,
        "training time": Seconds(cost.seconds),
        "disk": Bytes(cost.disk_bytes),
        "memory": Bytes(counts.estimate_training_memory(known.there(config)).total),
    }


def _with_ancestors(plan: Plan) -> Iterator[PlannedPoint]:
    """Each point after those of its ancestors that were not yielded before."""
    seen: set[str] = set()
    for item in plan.points:
        for ancestor in item.ancestors:
            if ancestor.run.name not in seen:
                yield plan.family[ancestor.run.name]
            seen.add(ancestor.run.name)
        seen.add(item.run.name)
        yield item


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
