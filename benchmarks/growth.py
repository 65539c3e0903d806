"""Growth of the time of an optimizer step with each size, or of a study with its number of runs, as Markdown.

`python benchmarks/growth.py [KEY=VALUE]...` measures the steps of a configuration and of larger and smaller ones: at
least half of the values are larger than the configured ones, so start from a small configuration.
`python benchmarks/growth.py runs [KEY=VALUE]...` measures whole studies, which are trained in full, one run and two
runs at a time.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from tabulate import tabulate

from albert_lab.config.compose import load
from albert_lab.config.schema import RunConfig
from albert_lab.cost import counts, rounds
from albert_lab.machine import cores, cpu_model

# Each size with the multiples of its configured value at which a step is measured.
SIZES = {
    "batch_size": (0.25, 0.5, 1, 2),
    "max_sequence_length": (0.5, 1, 2, 4),
    "model.num_layers": (1, 2, 4, 8),
    "model.hidden_size": (0.5, 1, 2, 4),
    "embedding_size": (0.25, 0.5, 1, 2),
    "tokenizer.vocab_size": (0.5, 1, 2, 4),
}
ROUNDS, SECONDS = 5, 0.3
RUNS, JOBS = (1, 2, 4, 8), (1, 2)


def steps(overrides: list[str]) -> None:
    """Print the time of a step at the values of each size; all values of one size are measured in the same rounds."""
    base = load(overrides)
    lines = []
    for size in SIZES:
        values = _values(base, size)
        configs = [load([*overrides, f"{size}={value}"]) for value in values]
        measured = rounds.measure_speeds(configs, rounds=ROUNDS, seconds=SECONDS, say=_note)
        work = [counts.count_flops(config).training * _tokens(config) for config in configs]
        for value, config, measured_value, flops in zip(values, configs, measured, work, strict=True):
            if measured_value.failure or measured[0].failure:
                lines.append([size, value, measured_value.failure or "its first value was not measured"])
                continue
            seconds = [_tokens(config) / measurement.training for measurement in measured_value.measurements]
            first = [_tokens(configs[0]) / measurement.training for measurement in measured[0].measurements]
            times = median(own / other for own, other in zip(seconds, first, strict=True))
            more = flops / work[0]
            lines.append(
                [size, value, f"{1000 * median(seconds):,.1f}", f"{times:.2f}", f"{more:.2f}", f"{times / more:.2f}"]
            )
    header = ["size", "value", "ms a step", "times the first", "FLOPs times the first", "time over FLOPs"]
    print(tabulate(lines, header, "github", disable_numparse=True))
    print(f"\nMedians over {ROUNDS} rounds; ratios are taken within rounds. {_machine(overrides)}")


def studies(overrides: list[str]) -> None:
    """Print the time of whole studies without downstream tasks, each a command of its own in an empty home."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        _study(overrides, 1, 1, Path(folder) / "prepared")  # prepares the text
        for runs in RUNS:
            taken = [_study(overrides, runs, jobs, Path(folder) / f"{runs}-{jobs}") for jobs in JOBS]
            cells = [f"{number:.1f}" for seconds in taken for number in (seconds, seconds / runs)]
            lines.append([runs, *cells, *(f"{seconds / taken[0]:.2f}" for seconds in taken[1:])])
            _note(f"{runs} runs: {', '.join(f'{seconds:.1f} s' for seconds in taken)}")
    header = [text for jobs in JOBS for text in (f"seconds, {jobs} at a time", "a run")]
    print(tabulate(lines, ["runs", *header, *(f"{jobs} over {JOBS[0]}" for jobs in JOBS[1:])], "github"))
    print(f"\nOnce each, with prepared text. {_machine(overrides)}")


def _values(base: RunConfig, size: str) -> list[int]:
    content: Any = base
    for key in size.split("."):
        content = getattr(content, key)
    most = base.model.max_position_embeddings if size == "max_sequence_length" else math.inf
    return sorted({value for factor in SIZES[size] if 1 <= (value := round(factor * content)) <= most})


def _tokens(config: RunConfig) -> int:
    return config.batch_size * config.max_sequence_length


def _study(overrides: list[str], runs: int, jobs: int, home: Path) -> float:
    seeds = f"seed={','.join(map(str, range(runs)))}"
    arguments = ["sweep", *overrides, seeds, "--tasks", "none", "--jobs", str(jobs)]
    own = {"ALBERT_LAB_HOME": str(home), "ALBERT_LAB_CACHE": str(home.parent / "cache")}
    # Without earlier reports, whose runs would not be trained again.
    own |= {"ALBERT_LAB_REPORTS": "", "ALBERT_LAB_PUBLISHED": str(home / "published")}
    start = time.perf_counter()
    command = [sys.executable, "-m", "albert_lab.cli", *arguments]
    subprocess.run(command, env=os.environ | own, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _machine(overrides: list[str]) -> str:
    return f"{cores()} cores ({cpu_model()}), load {os.getloadavg()[0]:.1f} at the end: {' '.join(overrides)}"


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    studies(arguments[1:]) if arguments[:1] == ["runs"] else steps(arguments)
