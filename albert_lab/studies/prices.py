"""What the runs of plans take before they are trained: FLOPs, time at the last measured speed, and
disk.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from albert_lab import paths
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.files import read_json
from albert_lab.machine import gpus
from albert_lab.model.counts import Products
from albert_lab.model.shape import EncoderShape
from albert_lab.runs import results
from albert_lab.studies.plan import Plan, Point
from albert_lab.tasks.records import FOLDER, FinetuningRecord
from albert_lab.tasks.task import KINDS, TaskConfig, TaskSettings, load_task, task_names

# weights and two moments in float32, in the two checkpoints that are kept
_CHECKPOINT_BYTES_PER_PARAMETER = 2 * 3 * 4
# work a second that converts a budget in seconds where only proportions matter
_ASSUMED_SPEED = 3e8
# work is FLOPs over H up to this H: so far the speed in FLOP/s grows with H (on CPUs, from H = 24)
_WIDEST = 256


@dataclass(frozen=True)
class Price:
    """What there is to train; seconds are None if they depend on the speed of a device that nobody
    measured.
    """

    runs: int
    finetunings: int
    flops: float
    seconds: float | None
    disk_bytes: int
    device: str


def price(plans: Sequence[Plan], slurm: str | None = None) -> Price:
    """The price of plans with the runs that others start from, each once; options of sbatch say
    whether on a GPU.
    """
    runs = {
        point.run.name: point
        for plan in plans
        for point in plan.to_train
        if point.lacks_pretraining
    }
    family = [point for plan in plans for point in plan.family.values()]
    device = _device(plans[0].config, slurm)
    paces_of_tasks = paces(device)
    finetunings = dict[tuple[str, str, int], tuple[Point, float]]()
    for point in family:
        finetunings |= {key: (point, done) for key, done in tunings(point, paces_of_tasks).items()}
    timed = [point for point in runs.values() if point.config.budget.unit == "seconds"]
    counted = [
        (point, work(point)) for point in runs.values() if point.config.budget.unit != "seconds"
    ]
    todo = [*finetunings.values(), *counted]
    flops = sum(done * min(point.config.model.hidden_size, _WIDEST) for point, done in todo)
    seconds = sum(map(work, timed)) / _ASSUMED_SPEED
    speed = last_speed(device)
    if todo and speed:
        evaluated = sum(_training(point.config) for point in runs.values())
        seconds += sum(done for _, done in todo) / speed[0] + speed[1] * evaluated
    disk = sum(_disk_bytes(point.config) for point in runs.values())
    return Price(
        len(runs), len(finetunings), flops, seconds if speed or not todo else None, disk, device
    )


def _device(config: RunConfig, slurm: str | None) -> str:
    has_gpu = bool(gpus()) if slurm is None else "gpu" in slurm
    return "cuda" if has_gpu and config.machine.device != "cpu" else "cpu"


def last_speed(device: str) -> tuple[float, float] | None:
    """Work a second in training of the newest run of 100 steps on a device, with the runs beside
    it; None without one.

    Then its seconds of evaluations, which grow with the model, for the work of training on a token.
    """
    for _, record in _finished(device, results.RECORD):
        if record.training.steps >= 100:
            taken, jobs = record.training, record.provenance.jobs or 1
            per_token = record.train_flops_per_token / min(record.config.model.hidden_size, _WIDEST)
            beside = (taken.total_seconds - taken.training_seconds) / jobs / per_token
            return taken.tokens / (
                1 - record.data.padding_share
            ) * per_token * jobs / taken.training_seconds, beside
    return None


def paces(device: str) -> dict[str, float]:
    """By task, the time of the newest fine-tuning of a run on a device over that of its work at
    last_speed().

    Batches are shorter than the longest examples, and there are evaluations.
    """
    found, (speed, _) = dict[str, float](), last_speed(device) or (0.0, 0.0)
    for task in task_names() if speed else ():
        for file, run in _finished(device, f"{FOLDER}/{task}-seed*.json"):
            with suppress(ConfigError):
                done = read_json(file, FinetuningRecord)
                whole = len(done.attempts) * _tuning(load_task(task), done.settings, run.config)
                found[task] = done.total_seconds / (run.provenance.jobs or 1) * speed / whole
                break
    return found


def _finished(device: str, files: str) -> Iterator[tuple[Path, results.RunRecord]]:
    """These files of the folders of finished runs on a device, newest first, and the record of the
    run.
    """
    for file in sorted(
        paths.runs().glob(f"*/{files}"), key=lambda file: file.stat().st_mtime, reverse=True
    ):
        with suppress(ConfigError):  # of an earlier version
            record = results.read(paths.runs() / file.relative_to(paths.runs()).parts[0])
            if record and record.provenance.device == device:
                yield file, record


def work(item: Point) -> float:
    """The work of a run's own pre-training, by the lengths of its stages; of seconds, at an assumed
    speed.
    """
    config, budget = item.config, item.config.budget
    share = budget.stop_at - (
        item.parent.config.budget.stop_at if item.parent and item.keep == "training" else 0.0
    )
    if budget.unit == "seconds":
        return budget.value * share * _ASSUMED_SPEED
    tokens = 1 if budget.unit == "tokens" else config.batch_size * config.max_sequence_length
    of_token = sum(
        part * _training(config.at_stage(number)) for number, part in enumerate(config.stage_shares)
    )
    return budget.value * share * tokens * of_token


def tunings(item: Point, paces: Mapping[str, float]) -> dict[tuple[str, str, int], float]:
    """Work of pre-training that takes as long as each missing fine-tuning, by start, task and seed;
    see paces().
    """
    return {
        (start.name, task.name, seed): paces.get(task.name, 1.0)
        * _tuning(task, task.fitted(item.config), item.config)
        for start, task, seed in item.missing
    }


def _tuning(task: TaskConfig, settings: TaskSettings, config: RunConfig) -> float:
    """The work of a fine-tuning at the full length of every example: of RACE's, one for each of
    four options.
    """
    sequences = (
        settings.steps
        * settings.batch_size
        * (4 if KINDS[task.kind].like == "multiple_choice" else 1)
    )
    return sequences * settings.max_sequence_length * _tuning_of_token(config)


def _work_of_token(config: RunConfig, flops: float) -> float:
    """Work that takes as long at any width: FLOPs, less where products are too small to be fast."""
    return flops / min(config.model.hidden_size, _WIDEST)


def _training(config: RunConfig) -> float:
    """Work of pre-training on a token."""
    length = config.max_sequence_length
    shape, num_labels = EncoderShape.from_config(config), len(config.inter_sentence.labels)
    masked = config.masking.most_predictions(length)
    products = Products.of_standard(shape, num_labels)
    flops = products.training_flops(shape, length, masked, has_labels=num_labels > 0)
    return _work_of_token(config, flops)


def _tuning_of_token(config: RunConfig) -> float:
    """Work of fine-tuning on a token: a forward pass, and a backward pass that takes twice as
    long.
    """
    shape = EncoderShape.from_config(config)
    flops = 3 * Products.of_standard(shape, 0).inference_flops(shape, config.max_sequence_length)
    return _work_of_token(config, flops)


def _disk_bytes(config: RunConfig) -> int:
    """Bytes of the checkpoints that are kept of a run: parameters in matrices, of standard
    blocks.
    """
    shape = EncoderShape.from_config(config)
    hidden = shape.hidden_size
    attention = len({*shape.attention_blocks}) * 4 * hidden**2
    ffn = len({*shape.ffn_blocks}) * 2 * hidden * shape.intermediate_size
    table = shape.embedding_size * (shape.vocab_size + shape.max_position_embeddings + hidden)
    return (table + attention + ffn) * _CHECKPOINT_BYTES_PER_PARAMETER
