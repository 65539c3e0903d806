"""`python tests/gpu`: what this machine's GPUs compute is tested, and how fast; without a GPU, it says so.

The tests marked `cuda`; a study at scale=smoke; a run by two processes where there are two GPUs; and the share of its
peak that training at scale=gpu reaches on the first GPU, which is written into the table of devices if the user agrees.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from shares import with_share

from albert_lab import paths
from albert_lab.config.compose import load
from albert_lab.cost.counts import count_flops
from albert_lab.cost.rates import DEVICES, devices
from albert_lab.cost.throughput import Bench

ROOT = Path(__file__).parents[2]
SECONDS = 20.0
SMOKE = ["scale=smoke", "machine.device=cuda", "--tasks", "none"]


def main() -> int:
    """Test and measure; returns 1 if a test failed."""
    if not torch.cuda.is_available():
        print("This machine has no GPU that this build of torch can use: nothing was tested.")
        return 0
    count = torch.cuda.device_count()
    print(f"{count} x {torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    failed = [] if _works([sys.executable, "-m", "pytest", "-m", "cuda", "-rs"]) else ["the tests marked cuda"]
    with tempfile.TemporaryDirectory() as home:
        os.environ["ALBERT_LAB_HOME"] = home
        program = [sys.executable, "-m", "albert_lab.cli"]
        if not _works([*program, "sop-vs-nsp", *SMOKE, "seed=0"]):
            failed.append("a study at scale=smoke")
        if count < 2:
            print("A run by two processes was not tested: it needs two GPUs.")
        elif not _works([*program, "pretrain", *SMOKE, "seed=1", "machine.processes=2"]):
            failed.append("a run by two processes")
    measure()
    print(f"FAILED: {', '.join(failed)}" if failed else "All passed.")
    return int(bool(failed))


def measure() -> None:
    """Print the share of its peak that training reaches on the first GPU, and offer to keep it."""
    config = load(["scale=gpu", "machine.device=cuda"])
    bench = Bench(config, SECONDS)
    rate = bench.training() * count_flops(config).training
    name = torch.cuda.get_device_name()
    known = [key for key, gpu in devices().devices.items() if gpu.is_called(name)]
    shown = f"Training at scale=gpu: {rate / 1e12:,.1f} TFLOP/s in {bench.precision} on {name}"
    if not known:
        print(f"{shown}, which is not in {DEVICES.relative_to(paths.PACKAGE.parent)}.")
        return
    share = rate / devices().devices[known[0]].peak(bench.precision)
    print(f"{shown}: {share:.1%} of its peak.")
    print(json.dumps({known[0]: {"measured": {bench.precision: round(share, 3)}}}))
    if sys.stdin.isatty() and input(f"Write it into {DEVICES.name}? [y/N] ").strip().lower() == "y":
        DEVICES.write_text(with_share(DEVICES.read_text(), known[0], bench.precision, share))


def _works(command: list[str]) -> bool:
    print(f"$ {' '.join(command)}", flush=True)
    return subprocess.run(command, cwd=ROOT).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
