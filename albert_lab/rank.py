"""The rank of this process among those of its run, in the variables that torchrun sets."""

import os
from dataclasses import dataclass

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@dataclass(frozen=True)
class Rank:
    """The number of a process among those of one run, and among those of its machine.

    Process 0 is the leader: only it locks, logs, saves, records and fine-tunes.
    """

    number: int = 0
    of: int = 1
    local: int = 0
    of_machine: int = 1

    @property
    def leads(self) -> bool:
        return self.number == 0


ALONE = Rank()


def read() -> Rank:
    """The rank in the environment of a process that torchrun started; elsewhere a process is alone."""
    return Rank(*(int(os.environ[name]) for name in VARIABLES)) if "LOCAL_WORLD_SIZE" in os.environ else ALONE
