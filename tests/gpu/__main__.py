"""`python tests/gpu`: what this machine's GPUs compute is tested; without a GPU, it says so.

The tests marked `cuda`; a study at scale=smoke; and a run by two processes where there are two GPUs.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
SMOKE = ["scale=smoke", "machine.device=cuda", "--tasks", "none"]


def main() -> int:
    """Test; returns 1 if a test failed."""
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
    print(f"FAILED: {', '.join(failed)}" if failed else "All passed.")
    return int(bool(failed))


def _works(command: list[str]) -> bool:
    print(f"$ {' '.join(command)}", flush=True)
    return subprocess.run(command, cwd=ROOT).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
