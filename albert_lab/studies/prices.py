"""What the runs of plans take before they are trained: FLOPs, time at the last measured speed, and disk."""

from collections.abc import Sequence
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
from albert_lab.studies.plan import Plan, Point
from albert_lab.tasks.task import KINDS

# Weights and two moments in float32, in each of the two checkpoints that are kept.
_CHECKPOINT_BYTES_PER_PARAMETER = 2 * 3 * 4
# FLOP/s that convert a budget in seconds into FLOPs where only proportions matter.
_ASSUMED_SPEED = 2e10


@dataclass(frozen=True)
class Price:
    """What there is to train; seconds are None if they depend on the speed of a device that nobody measured."""

    runs: int
    finetunings: int
    flops: float
    seconds: float | None
    disk_bytes: int
    device: str

    def __str__(self) -> str:
        tuned = f", {self.finetunings} fine-tunings" if self.finetunings else ""
        took = f"{self.flops:.1e} FLOPs (no speed known for {self.device})"
        if self.seconds is not None:
            took = f"about {duration(self.seconds)} {'of a GPU' if self.device == 'cuda' else 'here'}"
        return f"{self.runs} run{'s' * (self.runs != 1)}{tuned}, {took}, {decimal(self.disk_bytes)}"


def price(plans: Sequence[Plan], slurm: str | None = None) -> Price:
    """The price of plans with the runs that others start from, each once; options of sbatch say whether on a GPU."""
    runs = {item.run.name: item for plan in plans for item in plan.to_train if item.lacks_pretraining}
    tuned = {key: flops for plan in plans for item in plan.family.values() for key, flops in tunings(item).items()}
    timed = {name: work(item) for name, item in runs.items() if item.config.budget.unit == "seconds"}
    flops = sum(tuned.values()) + sum(work(item) for name, item in runs.items() if name not in timed)
    disk = sum(_costs(item.config)[0] for item in runs.values()) * _CHECKPOINT_BYTES_PER_PARAMETER
    has_gpu = bool(gpus()) if slurm is None else "gpu" in slurm
    device = "cuda" if has_gpu and plans[0].config.machine.device != "cpu" else "cpu"
    seconds = sum(timed.values()) / _ASSUMED_SPEED
    if flops:
        speed, beside = last_speed(device) or (0.0, 0.0)
        evaluations = beside * sum(_costs(item.config)[1] for item in runs.values())
        seconds = seconds + flops / speed + evaluations if speed else None
    return Price(len(runs), len(tuned), flops, seconds, disk, device)


def last_speed(device: str) -> tuple[float, float] | None:
    """FLOP/s in training of the newest run of 100 steps on a device, with the runs beside it; None without one.

    Then its seconds of evaluations, which grow with the model, for each FLOP of training on a token.
    """
    for file in sorted(paths.runs().glob(f"*/{results.RECORD}"), key=lambda file: file.stat().st_mtime, reverse=True):
        with suppress(ConfigError):  # of an earlier version
            record = results.read(file.parent)
            if record and record.training.steps >= 100 and record.provenance.device == device:
                taken, jobs, per_token = record.training, record.provenance.jobs or 1, record.train_flops_per_token
                flops = taken.tokens / (1 - record.data.padding_share) * per_token
                beside = (taken.total_seconds - taken.training_seconds) / jobs / per_token
                return flops * jobs / taken.training_seconds, beside
    return None


def work(item: Point) -> float:
    """FLOPs of the pre-training of a run by itself, by the lengths of its stages; of seconds, at an assumed speed."""
    config, budget = item.config, item.config.budget
    share = budget.stop_at - (item.parent.config.budget.stop_at if item.parent and item.keep == "training" else 0.0)
    if budget.unit == "seconds":
        return budget.value * share * _ASSUMED_SPEED
    tokens = 1 if budget.unit == "tokens" else config.batch_size * config.max_sequence_length
    flops = sum(part * _costs(config.at_stage(number))[1] for number, part in enumerate(config.stage_shares))
    return budget.value * share * tokens * flops


def tunings(item: Point) -> dict[tuple[str, str, int], float]:
    """FLOPs of training each missing fine-tuning, by start, task and seed, at the full length of every example."""
    found = {}
    for start, task, seed in item.missing:
        settings = task.fitted(item.config)
        # A multiple-choice example is a sequence for each option, of which RACE has four.
        sequences = settings.steps * settings.batch_size * (4 if KINDS[task.kind].like == "multiple_choice" else 1)
        tokens = sequences * settings.max_sequence_length
        found[start.name, task.name, seed] = tokens * _costs(item.config)[2]
    return found


def _costs(config: RunConfig) -> tuple[int, float, float]:
    """Parameters in matrices, and FLOPs per position of pre-training and of fine-tuning: 6 for each factor of products.

    Blocks of own code count like the standard ones. model/counts.py is exact, and loads torch.
    """
    shape, length = EncoderShape.from_config(config), config.max_sequence_length
    hidden, embedding, vocabulary = shape.hidden_size, shape.embedding_size, shape.vocab_size
    attention, ffn = 4 * hidden**2, 2 * hidden * shape.intermediate_size
    blocks = len({*shape.attention_blocks}) * attention + len({*shape.ffn_blocks}) * ffn
    table = embedding * (vocabulary + shape.max_position_embeddings + hidden)
    encoder = shape.num_layers * (attention + ffn + 2 * length * hidden) + embedding * hidden
    head = config.masking.most_predictions(length) / length * embedding * (hidden + vocabulary)
    return table + blocks, 6 * (encoder + head), 6 * encoder
