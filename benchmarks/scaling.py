"""Pre-training by several processes against one, as two tables in Markdown.

`python benchmarks/scaling.py`: synthetic batches, each number from processes of its own. It prints the load of the
machine too, since other work makes all times longer.
"""

import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from toy_training import CPU, in_processes, train
from transformers_step import synthetic_batch

from albert_lab.config.compose import load
from albert_lab.data.prepare import prepare
from albert_lab.model.heads import PretrainingModel
from albert_lab.training.optimizer import build_optimizer
from albert_lab.training.step import Step

STEPS = 12
EQUAL_STEPS = 300
CONFIG = ["batch_size=64", "optimizer=lamb", "dropout=0.1", "machine.micro_batch_size=16", "machine.precision=fp32"]


def main() -> None:
    """Print both tables."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start\n")
    print("| processes | seconds a step | of it adding up | over one process |\n|---|---|---|---|")
    first = None
    for size in (1, 2, 4):
        step, adding = in_processes(size, steps)[0]
        first = first or step
        print(f"| {size} | {step:.3f} | {adding:.4f} | {step / first:.2f} |", flush=True)
    print_differences()
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


def steps(processes) -> tuple[float, float]:
    """Seconds of a step, and of adding up gradients alone: medians."""
    config = load(["scale=laptop", *CONFIG])
    model = PretrainingModel.from_config(config)
    step = Step(config, model, build_optimizer(model, config.optimizer, 0.001), CPU, nullcontext, processes)
    batch = synthetic_batch(config, config.batch_size)
    taken = [timed(lambda number=number: step.take(model, batch, number)) for number in range(STEPS)]
    gradients = [parameter.detach().clone() for parameter in model.parameters()]
    added = [timed(lambda: processes.add_up(gradients)) for _ in range(STEPS)]
    return statistics.median(taken[2:]), statistics.median(added[2:])


def print_differences() -> None:
    """Print how far a training by several processes ends from the same training by one."""
    short = [f"budget.value={EQUAL_STEPS}", "machine.log_every_steps=1", "evaluation.num_curve_points=1"]
    small = ["evaluation.num_pairs=64", "evaluation.num_probe_pairs=64", "evaluation.num_curve_pairs=64"]
    config = load(["scale=laptop", *CONFIG, *short, *small])
    prepare(config, lambda line: None)
    print(
        f"\n| processes | largest difference of a loss in {EQUAL_STEPS} steps | of a weight after them |\n|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        alone, *several = (
            in_processes(size, train, {"run": config}, Path(folder) / f"{size}")[0]["run"] for size in (1, 2, 4)
        )
    for size, (losses, weights, _) in zip((2, 4), several, strict=True):
        loss = np.abs(np.subtract(losses, alone[0]) / alone[0]).max()
        weight = max(np.abs(tensor - alone[1][name]).max() for name, tensor in weights.items())
        print(f"| {size} | {loss:.1e} | {weight:.1e} |", flush=True)


def timed(work) -> float:
    """Seconds that some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
