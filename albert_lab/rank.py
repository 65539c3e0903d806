"""The rank of this process in its run, from RANK, WORLD_SIZE and LOCAL_RANK (set by torchrun) or from srun."""

import os
import re
from dataclasses import dataclass

from albert_lab.errors import ConfigError


@dataclass(frozen=True)
class Rank:
    """The number of a process among the processes of one run, and among those of its machine.

    Process 0 is the leader: only it locks, logs, saves, records and fine-tunes.
    """

    number: int = 0
    of: int = 1
    local: int = 0
    of_machine: int = 1
    is_bound: bool = False  # whether the system shows it only its own cores and GPU

    @property
    def leads(self) -> bool:
        return self.number == 0


ALONE = Rank()
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def read() -> Rank:
    """The rank in the environment: from RANK and WORLD_SIZE, else from a step of Slurm; else a single process.

    Raises:
        ConfigError: one of them without the other, a value that is not a number, or a value out of range.
    """
    number, of = _read("RANK"), _read("WORLD_SIZE")
    if number is None and of is None:
        return _of_srun()
    if number is None or of is None or not 0 <= number < of:
        raise ConfigError(
            f"RANK={os.environ.get('RANK', '')} WORLD_SIZE={os.environ.get('WORLD_SIZE', '')}: process numbers are 0 to"
            " WORLD_SIZE - 1 (torchrun sets both)"
        )
    if of == 1:
        return ALONE
    _check_address("RANK and WORLD_SIZE are set")
    local, of_machine = _read("LOCAL_RANK"), _read("LOCAL_WORLD_SIZE")
    return Rank(number, of, number if local is None else local, of_machine or of)


def _of_srun() -> Rank:
    """The rank of a task of srun, in a step of several tasks; the job's script sets their address."""
    number, of = _read("SLURM_PROCID"), _read("SLURM_STEP_NUM_TASKS")
    if number is None or of is None or of == 1:
        return ALONE
    _check_address(f"srun has started {of} tasks")
    node = _read("SLURM_NODEID") or 0
    of_nodes = _tasks_per_node(os.environ.get("SLURM_STEP_TASKS_PER_NODE", ""))
    of_machine = of_nodes[node] if node < len(of_nodes) else of
    is_bound = bool(os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_GPUS_PER_TASK"))
    return Rank(number, of, _read("SLURM_LOCALID") or 0, of_machine, is_bound)


def _tasks_per_node(text: str) -> list[int]:
    """Tasks of each node, from a list in Slurm's form: 2(x3),1 means 2, 2, 2, 1."""
    per_node = []
    for tasks, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        per_node += [int(tasks)] * int(times or 1)
    return per_node


def _check_address(what: str) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise ConfigError(f"{what}, but {name} is not set: the processes cannot find each other")


def _read(name: str) -> int | None:
    text = os.environ.get(name, "")
    try:
        return int(text) if text else None
    except ValueError as error:
        raise ConfigError(f"{name}={text} is not a whole number") from error
