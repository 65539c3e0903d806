"""What the runs of a plan take before they are trained: FLOPs, time at the last measured speed, and disk."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from albert_lab import paths
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.machine import gpu_model
from albert_lab.messages import duration, size
from albert_lab.model.counts import count, count_training_flops
from albert_lab.runs import finetunings, results
from albert_lab.studies.plan import Plan, PlannedPoint, family, lines_to_pretrain
from albert_lab.tasks.task import KINDS

# Weights and two moments in float32, in each of the two checkpoints that are kept.
_CHECKPOINT_BYTES_PER_PARAMETER = 2 * 3 * 4
# Fewer measure the start of a process.
_FEWEST_STEPS = 100
# FLOP/s that convert a budget in seconds into FLOPs where only proportions matter.
_ASSUMED_SPEED = 2e10


@dataclass(frozen=True)
class Price:
    """What there is to train: runs, fine-tunings, their FLOPs, the seconds of budgets in seconds, bytes on disk."""

    runs: int = 0
    finetunings: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    disk_bytes: int = 0

    def __add__(self, other: "Price") -> "Price":
        return Price(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def time(self, speed: float | None) -> float | None:
        """Seconds at a speed in FLOP/s; None if it is unknown and needed."""
        if not self.flops:
            return self.seconds
        return self.seconds + self.flops / speed if speed else None

    def as_data(self, device: str, speed: float | None) -> dict[str, Any]:
        return asdict(self) | {"device": device, "seconds": self.time(speed)}

    def as_text(self, device: str, speed: float | None, on: str | None = None) -> str:
        runs = f"{self.runs} run{'' if self.runs == 1 else 's'}"
        tuned = f", {self.finetunings} fine-tunings" if self.finetunings else ""
        if (seconds := self.time(speed)) is None:
            took = f"{self.flops:.1e} FLOPs (no speed known for {device})"
        else:
            took = f"about {duration(seconds)} {f'on {on}' if on else 'here'}"
        return f"{runs}{tuned}, {took}, {size(self.disk_bytes)}"


def price(plan: Plan, seen: set[str] | None = None) -> Price:
    """The price of a plan with the runs that others start from, each run and fine-tuning once; writes nothing.

    Those in seen are not counted again; the others are added to it.

    Raises:
        DamagedFileError: the record of a run is damaged.
    """
    seen, total = set() if seen is None else seen, Price()
    to_pretrain = {item.run.name for line in lines_to_pretrain(plan.points) for item in line}
    for name, item in family(plan.points).items():
        results.check(item.run.folder)
        if name in to_pretrain and name not in seen:
            config = item.point.config
            seconds = config.budget.value * _own_share(item) if config.budget.unit == "seconds" else 0.0
            flops = 0.0 if seconds else work(item)
            total += Price(1, 0, flops, seconds, count(config).total * _CHECKPOINT_BYTES_PER_PARAMETER)
        tuned = {str(key): flops for key, flops in finetuning_flops(item).items()}
        total += Price(finetunings=len(tuned.keys() - seen), flops=sum(tuned[key] for key in tuned.keys() - seen))
        seen |= {name, *tuned}
    return total


def device_of(config: RunConfig) -> str:
    """The name of the device that trains a configuration here: that of the GPU, or cpu."""
    return (gpu_model() if config.machine.device != "cpu" else None) or "cpu"


def last_speed(device: str) -> float | None:
    """FLOP/s, padding included, of the newest run of 100 steps on a device with this in its name; None without one."""
    files = sorted(paths.runs().glob(f"*/{results.RECORD}"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files:
        try:
            record = results.read(file.parent)
        except ConfigError:  # of an earlier version
            continue
        if record is None or record.training.steps < _FEWEST_STEPS:
            continue
        if device.lower() in record.provenance.device_names.lower():
            positions = record.training.tokens_per_second / (1 - record.data.padding_share)
            return positions * record.train_flops_per_token
    return None


def _own_share(item: PlannedPoint) -> float:
    start, stop_at = item.point.start, item.point.config.budget.stop_at
    if start is None or start.keep != "training":
        return stop_at
    return stop_at - start.point.config.budget.stop_at


def _flops(config: RunConfig) -> float:
    """FLOPs of a whole budget, at full length."""
    if config.budget.unit == "seconds":
        return config.budget.value * _ASSUMED_SPEED
    tokens = 1 if config.budget.unit == "tokens" else config.batch_size * config.max_sequence_length
    return config.budget.value * tokens * count_training_flops(config)


def finetuning_flops(item: PlannedPoint) -> dict[tuple[str, str, int], float]:
    """FLOPs of each fine-tuning that is to be made, by start, task and seed, at the full length of every example."""
    flops_of = {}
    for start, task, seed in finetunings.with_starts(item.missing):
        flops, settings = count(item.run.config), task.fitted(item.run.config)
        available = task.official_examples.get("dev", settings.dev_examples or 0)  # of an own file it is unknown
        evaluated = math.ceil(settings.steps / settings.checkpoint_steps)
        evaluated *= min(available, settings.dev_examples or available)
        trained = settings.steps * settings.batch_size
        # A multiple-choice example is a sequence for each option, of which RACE has four.
        tokens = (4 if KINDS[task.kind].like == "multiple_choice" else 1) * settings.max_sequence_length
        flops_of[start.name, task.name, seed] = tokens * (
            trained * flops.training_flops + evaluated * flops.inference_flops
        )
    return flops_of


def work(item: PlannedPoint) -> float:
    """FLOPs of the pre-training of a run by itself; of a budget in seconds, at an assumed speed."""
    return _flops(item.run.config) * _own_share(item)
