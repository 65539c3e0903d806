"""What the runs of a plan take before they are trained: FLOPs, time at the last measured speed, and disk."""

import math
from contextlib import suppress
from dataclasses import dataclass

from rich.filesize import decimal

from albert_lab import paths
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.machine import gpus
from albert_lab.messages import duration
from albert_lab.model.shape import EncoderShape
from albert_lab.runs import results
from albert_lab.studies.plan import Plan
from albert_lab.studies.points import Point
from albert_lab.tasks.task import KINDS

# Weights and two moments in float32, in each of the two checkpoints that are kept.
_CHECKPOINT_BYTES_PER_PARAMETER = 2 * 3 * 4
# Runs of fewer steps measure the start of a process; of runs, only so many of the newest are looked at.
_FEWEST_STEPS, _NEWEST = 100, 20
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

    def time(self, speed: float | None, jobs: int = 1) -> float | None:
        """Seconds at a speed in FLOP/s, with so many runs at a time; None if the speed is unknown and needed."""
        if not self.flops:
            return self.seconds
        return self.seconds + self.flops / speed / min(jobs, self.runs or jobs) if speed else None

    def as_text(self, device: str, seconds: float | None) -> str:
        runs = f"{self.runs} run{'' if self.runs == 1 else 's'}"
        tuned = f", {self.finetunings} fine-tunings" if self.finetunings else ""
        unknown = f"{self.flops:.1e} FLOPs (no speed known for {device})"
        took = unknown if seconds is None else f"about {duration(seconds)} here"
        return f"{runs}{tuned}, {took}, {decimal(int(self.disk_bytes))}"


def price(plan: Plan, seen: set[str] | None = None) -> Price:
    """The price of a plan with the runs that others start from, each run and fine-tuning once; writes nothing.

    Those in seen are not counted again; the others are added to it.
    """
    seen, total = set() if seen is None else seen, Price()
    for name, item in plan.family.items():
        if name in plan.to_pretrain and name not in seen:
            is_timed = item.run.config.budget.unit == "seconds"
            seconds = work(item) / _ASSUMED_SPEED if is_timed else 0.0
            disk = costs(item.run.config)[0] * _CHECKPOINT_BYTES_PER_PARAMETER
            total += Price(1, 0, 0.0 if is_timed else work(item), seconds, disk)
        tuned = {str(key): flops for key, flops in finetuning_flops(item).items() if str(key) not in seen}
        total += Price(finetunings=len(tuned), flops=sum(tuned.values()))
        seen |= {name, *tuned}
    return total


def costs(config: RunConfig) -> tuple[int, float, float]:
    """Matrix parameters, and FLOPs per token of training and of inference, as model/counts.py counts them.

    By formula, since torch takes a second to load; of own blocks it gives those of the standard ones.
    """
    shape, length = EncoderShape.from_config(config), config.max_sequence_length
    hidden, embedding, vocabulary = shape.hidden_size, shape.embedding_size, shape.vocab_size
    is_glu = shape.ffn_block == "glu"
    attention = 4 * hidden**2
    ffn = hidden * (3 * round(shape.intermediate_size * 2 / 3) if is_glu else 2 * shape.intermediate_size)
    projection, pooler = shape.projection * embedding * hidden, hidden**2
    blocks = len({*shape.attention_blocks}) * attention + len({*shape.ffn_blocks}) * ffn
    table = embedding * (vocabulary + shape.max_position_embeddings)
    layers = shape.num_layers * (attention + ffn + 2 * length * hidden)
    inference = 2 * (layers + projection + pooler / length)
    labels, masked = len(config.inter_sentence.labels), config.masking.most_predictions(length)
    heads = 2 * (masked * embedding * (hidden + vocabulary) + hidden * labels) / length
    without_gradient = 0 if labels else 4 * pooler / length
    return table + projection + blocks + pooler, 3 * (inference + heads) - without_gradient, inference


def device_of(config: RunConfig) -> str:
    """The name of the device that trains a configuration here: that of the GPU, or cpu."""
    if config.machine.device == "cpu" or not gpus():
        return "cpu"
    import torch

    return torch.cuda.get_device_name(0)


def last_speed(device: str, jobs: int = 1) -> float | None:
    """FLOP/s, padding included, of the newest run of 100 steps on a device with this in its name; None without one.

    One of as many runs at a time has precedence.
    """
    files = sorted(paths.runs().glob(f"*/{results.RECORD}"), key=lambda file: file.stat().st_mtime, reverse=True)
    speeds: dict[bool, float] = {}
    for file in files[:_NEWEST]:
        with suppress(ConfigError):  # of an earlier version
            record = results.read(file.parent)
            if (
                record
                and record.training.steps >= _FEWEST_STEPS
                and device.lower() in record.provenance.device_names.lower()
            ):
                positions = record.training.tokens_per_second / (1 - record.data.padding_share)
                speeds.setdefault(record.provenance.jobs == jobs, positions * record.train_flops_per_token)
    return speeds.get(True, speeds.get(False))


def finetuning_flops(item: Point) -> dict[tuple[str, str, int], float]:
    """FLOPs of each fine-tuning that is to be made, by start, task and seed, at the full length of every example."""
    flops_of = {}
    for start, task, seed in item.missing:
        _, training, inference = costs(item.run.config)
        settings = task.fitted(item.run.config)
        available = task.official_examples.get("dev", settings.dev_examples or 0)  # of an own file it is unknown
        evaluated = math.ceil(settings.steps / settings.checkpoint_steps)
        evaluated *= min(available, settings.dev_examples or available)
        # A multiple-choice example is a sequence for each option, of which RACE has four.
        tokens = (4 if KINDS[task.kind].like == "multiple_choice" else 1) * settings.max_sequence_length
        examples = settings.steps * settings.batch_size
        flops_of[start.name, task.name, seed] = tokens * (examples * training + evaluated * inference)
    return flops_of


def work(item: Point) -> float:
    """FLOPs of the pre-training of a run by itself, by the lengths of its stages; of seconds, at an assumed speed."""
    config = item.run.config
    trained = item.parent.config.budget.stop_at if item.parent and item.keep == "training" else 0.0
    share = config.budget.stop_at - trained
    if config.budget.unit == "seconds":
        return config.budget.value * share * _ASSUMED_SPEED
    tokens = 1 if config.budget.unit == "tokens" else config.batch_size * config.max_sequence_length
    stages = enumerate(config.stage_shares)
    flops = sum(part * costs(config.at_stage(number))[1] for number, part in stages)
    return config.budget.value * share * tokens * flops
