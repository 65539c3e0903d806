import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("two-nodes.sh")


@pytest.fixture(scope="session")
def slurm():
    """A Slurm of two nodes on this machine, brought up and taken down; a command of its own for
    what it can do.
    """
    if not shutil.which("sbatch") or not shutil.which(
        "slurmctld", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"
    ):
        pytest.skip(
            f"Slurm is not installed here: `{SCRIPT.name} install`, as root, installs Debian's"
        )
    folder = Path(tempfile.mkdtemp(prefix="albert-lab-slurm-"))
    folder.chmod(0o755)  # munge takes no folder that others cannot pass through
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_HERE", str(folder))
        patch.setenv("SLURM_HERE_PORT", "17200")

        def call(*arguments: str) -> str:
            return subprocess.run(
                [SCRIPT, *arguments], check=True, capture_output=True, text=True
            ).stdout

        try:
            call("up")
            patch.setenv("SLURM_CONF", call("env").partition("SLURM_CONF=")[2].strip())
            yield call
        finally:
            call("down", "--purge")
