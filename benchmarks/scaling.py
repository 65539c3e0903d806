"""Pre-training by several processes against one, and resuming against the amount of text, as three tables in Markdown.

`python benchmarks/scaling.py [TOKENS]...`: synthetic batches and text, each number from a process of its own. It
prints the load of the machine too, since other work makes all times longer.
"""

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from toy_training import CPU, in_processes, train

from albert_lab.config.compose import load
from albert_lab.cost.throughput import synthetic_batch
from albert_lab.data.batches import Batches
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import Shards
from albert_lab.model.heads import PretrainingModel
from albert_lab.training.memory import peak_memory_bytes
from albert_lab.training.optimizer import build_optimizer
from albert_lab.training.step import Step

STEPS = 12
EPOCHS = (0, 10, 40)
EQUAL_STEPS = 300
PARTS = ("sentences", "documents", "sources")
CONFIG = ["batch_size=64", "optimizer=lamb", "dropout=0.1", "machine.micro_batch_size=16", "machine.precision=fp32"]


def main(sizes: list[int]) -> None:
    """Print the three tables."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start\n")
    print("| processes | seconds a step | of it adding up | over one process |\n|---|---|---|---|")
    first = None
    for size in (1, 2, 4):
        step, adding = in_processes(size, steps)[0]
        first = first or step
        print(f"| {size} | {step:.3f} | {adding:.4f} | {step / first:.2f} |", flush=True)
    print_differences()
    print("\n| tokens | plan | epoch | first batch, s | over epoch 0 | peak MiB | before the plan |")
    print("|---|---|---|---|---|---|---|")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ALBERT_LAB_CACHE"] = folder
            in_child(write_prose, size, Path(folder))
            for how in ("made", "found on disk") if size >= 50_000_000 else ("made",):
                zero = None
                for epoch in EPOCHS:
                    seconds, peak, before = in_child(resume, Path(folder), epoch)
                    zero = zero or seconds
                    numbers = f"{seconds:.2f} | {seconds / zero:.1f} | {peak >> 20:,} | {before >> 20:,}"
                    print(f"| {size / 1e6:,.0f} M | {how} | {epoch} | {numbers} |", flush=True)
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


@dataclass(frozen=True)
class Words:
    """A vocabulary of a laptop's size."""

    pad_id: int = 0
    cls_id: int = 2
    sep_id: int = 3
    mask_id: int = 4

    @cached_property
    def word_starts(self) -> np.ndarray:
        """[vocab]."""
        return np.arange(30_000) % 10 < 7


def write_prose(tokens: int, folder: Path) -> None:
    """Write documents of about 30 sentences of about 27 tokens, whose tokens are a sparse file."""
    rng = np.random.default_rng(0)
    lengths = np.maximum(1, np.rint(rng.lognormal(np.log(27) - 0.18, 0.6, tokens // 27))).astype(np.int64)
    documents = rng.geometric(1 / 30, len(lengths) // 30)
    ends = np.cumsum(documents)
    ends = np.append(ends[ends < len(lengths)], len(lengths))
    offsets = (np.append(0, np.cumsum(lengths)), np.append(0, ends), np.arange(len(ends) + 1))
    for name, part in zip(PARTS, offsets, strict=True):
        np.save(folder / f"{name}.npy", part)
    open_memmap(folder / "tokens.npy", "w+", np.uint16, (int(lengths.sum()),))


def resume(folder: Path, epoch: int) -> tuple[float, int, int]:
    """Seconds to the first batch of an epoch, the peak of memory by then, and the peak before."""
    tokens, *parts = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("tokens", *PARTS))
    shards = Shards("train", tokens, *parts, meta={})
    config = load(["scale=laptop", "max_sequence_length=128", "batch_size=256"])
    batches = Batches(shards, Words(), config)
    pairs = shards.num_tokens // 125
    state = batches.state_dict()
    batches.load_state_dict({**state, "starts": [number * pairs for number in range(epoch + 1)]})
    before = peak_memory_bytes(CPU)
    seconds = timed(lambda: batches.batch(epoch * pairs // config.batch_size + bool(epoch)))
    return seconds, peak_memory_bytes(CPU), before


def in_child(work, *arguments):
    """The result of a function in a new process, whose memory is its own: a fork begins with its parent's peak."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [5_000_000, 50_000_000])
