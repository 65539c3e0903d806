"""Which process of a run this one is: RANK, WORLD_SIZE and LOCAL_RANK, as torchrun sets them."""

import os
from dataclasses import dataclass

from albert_lab.errors import ConfigError


@dataclass(frozen=True)
class Rank:
    """The number of a process among those that make one run together, and among those of its machine.

    Process 0 leads: it alone locks, logs, saves, records and fine-tunes.
    """

    number: int = 0
    of: int = 1
    local: int = 0
    of_machine: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes."""
        return self.number == 0


ALONE = Rank()


def read() -> Rank:
    """The rank that the environment says; without RANK and WORLD_SIZE the process is alone.

    Raises:
        ConfigError: one of them without the other, a value that is no number, or one out of range.
    """
    number, of = _read("RANK"), _read("WORLD_SIZE")
    if number is None and of is None:
        return ALONE
    if number is None or of is None or not 0 <= number < of:
        raise ConfigError(
            f"RANK={os.environ.get('RANK', '')} WORLD_SIZE={os.environ.get('WORLD_SIZE', '')}: process numbers are 0 to"
            " WORLD_SIZE - 1 (torchrun sets both)"
        )
    if of == 1:
        return ALONE
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise ConfigError(f"RANK and WORLD_SIZE are set, {name} is not: the processes cannot find each other")
    local, of_machine = _read("LOCAL_RANK"), _read("LOCAL_WORLD_SIZE")
    return Rank(number, of, number if local is None else local, of_machine or of)


def _read(name: str) -> int | None:
    text = os.environ.get(name, "")
    try:
        return int(text) if text else None
    except ValueError as error:
        raise ConfigError(f"{name}={text} is not a whole number") from error
