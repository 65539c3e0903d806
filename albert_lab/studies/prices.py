"""What the runs of plans take before they are trained: FLOPs, and time, at the speed of steps
that are timed whenever a study begins.
"""

import json
import math
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import PositiveFloat, PositiveInt

from albert_lab import own_code, paths
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError
from albert_lab.files import read_json
from albert_lab.machine import gpus
from albert_lab.model.counts import Products
from albert_lab.runs import run as runs
from albert_lab.storage import write_atomically
from albert_lab.studies.children import environment
from albert_lab.studies.plan import Plan, Point
from albert_lab.tasks.task import KINDS

# work a second that converts a budget in seconds where only proportions matter
_ASSUMED_SPEED = 3e8
# work is FLOPs over H up to this H: so far the speed in FLOP/s grows with H (on CPUs, from H = 24)
_WIDEST = 256
# Time of fine-tuning over that of pre-training for the same work, by the published reports: batches
# are shorter than the longest examples, but there are evaluations, and on a GPU no graphs.
TUNING_PACE = {"cpu": 1.0, "cuda": 4.0}
# That of evaluation, in the same way: passes without gradients, and probes.
_READING_PACE = 0.7
_LONGEST_TIMING = 120.0  # seconds; a study whose step takes longer begins without a speed


@dataclass(frozen=True)
class Price:
    """What there is to train; seconds are None if they depend on a speed that nobody timed.

    speed_of is the H of the model that was timed, None if it is that of these runs.
    """

    runs: int
    finetunings: int
    flops: float
    seconds: float | None
    device: str
    speed_of: int | None = None


# By device and H: work a second of all runs at a time, and the seconds that starting one adds.
_Speeds = dict[str, dict[PositiveInt, tuple[PositiveFloat, PositiveFloat]]]


def price(plans: Sequence[Plan], slurm: str | None = None) -> Price:
    """The price of plans with the runs that others start from, each once; options of sbatch say
    whether on a GPU.
    """
    to_train = {point.run.name: point for plan in plans for point in plan.to_train}.values()
    pretrained = [
        point for point in to_train if point.lacks_pretraining and point.pretraining != "unscored"
    ]
    device = device_of(plans[0].config, slurm)
    seconds = flops = 0.0
    todo = 0.0  # work at a speed that has to be known
    for point in pretrained:
        training = work(point)
        if point.config.budget.unit == "seconds":
            seconds += training / _ASSUMED_SPEED
        else:
            todo += training
            flops += training * _flops_per_work(point.config)
    tuned = set()
    for point in to_train:
        for key, done in tunings(point).items():
            if key not in tuned:  # that of random weights is one for several runs
                tuned.add(key)
                todo += TUNING_PACE[device] * done
                flops += done * _flops_per_work(point.config)
    speed_of = None
    speeds = _speeds().get(device)
    if to_train and speeds:
        hidden_size = largest(to_train).config.model.hidden_size
        nearest = min(speeds, key=lambda other: abs(math.log(other / hidden_size)))
        speed_of = nearest if nearest != hidden_size else None
        speed, start = speeds[nearest]
        todo += sum(_evaluations(point.config) for point in pretrained)
        seconds += todo / speed + start * len(to_train)
    known = seconds if speeds or not todo else None
    return Price(len(pretrained), len(tuned), flops, known, device, speed_of)


def device_of(config: RunConfig, slurm: str | None = None) -> str:
    """The kind of device that trains, here or in a job of Slurm with these options."""
    has_gpu = bool(gpus()) if slurm is None else "gpu" in slurm
    return "cuda" if has_gpu and config.machine.device != "cpu" else "cpu"


def largest(points: Collection[Point]) -> Point:
    """The run with the most work of a token: the speed of the others matters less."""
    return max(points, key=lambda point: _training(point.config))


def time_steps(points: Collection[Point], at_once: int) -> None:
    """Note the speed of two seconds of training steps of the largest run, or of one step, in a
    process as a run has it.

    If that process fails, so will the run, which says why.

    Args:
        at_once: how many runs are trained at a time, each with its share of the machine.
    """
    point = largest(points)
    folder = runs.create(point.run)
    config = point.config
    arguments = json.dumps({"include": own_code.included_files(), "only_time": True})
    began = time.monotonic()
    try:
        printed = subprocess.check_output(
            [sys.executable, "-m", "albert_lab.runs.worker", str(folder), arguments],
            env=environment(at_once),
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=_LONGEST_TIMING,
        )
        seconds_of_token = float(printed.split()[-1])  # own code may print before it
    except (subprocess.SubprocessError, ValueError, IndexError):
        return
    start = (time.monotonic() - began) / at_once
    device = device_of(config)
    processes = at_once * config.machine.processes
    if device == "cuda":
        processes = min(processes, len(gpus()))
    speed = processes * _training(config) / seconds_of_token
    speeds = _speeds()
    speeds.setdefault(device, {})[config.model.hidden_size] = (speed, start)
    write_atomically(_file(), json.dumps(speeds) + "\n")


def _file() -> Path:
    return paths.home() / "speeds.json"


def _speeds() -> _Speeds:
    """The last speeds by device and H; empty before the first study."""
    with suppress(ConfigError):  # there are none yet, or the file is damaged and is written anew
        return read_json(_file(), _Speeds)
    return {}


def work(item: Point) -> float:
    """The work of a run's own pre-training, by the lengths of its stages; of seconds, at an assumed
    speed.
    """
    config = item.config
    budget = item.config.budget
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


def _evaluations(config: RunConfig) -> float:
    """The work of the evaluations of a run: the points of its curve, with three measures, and at
    the end six sets of held-out pairs and three of training pairs (measures/catalog.py).
    """
    asked = config.evaluation
    sequences = 3 * asked.num_curve_points * asked.num_curve_pairs
    sequences += 6 * asked.num_pairs + 3 * asked.num_probe_pairs
    return _READING_PACE * sequences * config.max_sequence_length * _forward(config)


def tunings(item: Point) -> dict[tuple[str, str, int], float]:
    """The work of each fine-tuning without a record, by the names of its start and task and its
    seed.

    All examples count at the full length. Callers multiply it by TUNING_PACE to get the time.
    """
    found = {}
    for start, task, seed in item.missing:
        asked = task.fitted(item.config)
        options = 4 if KINDS[task.kind].like == "multiple_choice" else 1  # as RACE has
        tokens = asked.steps * asked.batch_size * options * asked.max_sequence_length
        # A backward pass takes twice as long as a forward pass.
        found[start.name, task.name, seed] = 3 * tokens * _forward(item.config)
    return found


def _training(config: RunConfig) -> float:
    """Work of pre-training per token, at the full length: a forward and a backward pass."""
    length = config.max_sequence_length
    masked = config.masking.most_predictions(length)
    flops = Products.of_standard(config).training_flops(length, masked)
    return flops / _flops_per_work(config)


def _forward(config: RunConfig) -> float:
    """Work of a forward pass of the encoder and its pooler, per token."""
    flops = Products.of_standard(config).inference_flops(config.max_sequence_length)
    return flops / _flops_per_work(config)


def _flops_per_work(config: RunConfig) -> int:
    """FLOPs in one unit of work: H, at most _WIDEST. A unit takes about the same time at any H,
    since small products are slow.
    """
    return min(config.model.hidden_size, _WIDEST)
