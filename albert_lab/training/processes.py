"""The processes of one run, started by torchrun: they divide micro-batches, sum gradients, and
decide together.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from albert_lab.errors import LostProcessError
from albert_lab.machine import Rank

# The leader may prepare text for hours; torchrun ends the others when one of them has ended.
_TIMEOUT = timedelta(days=7)


class Decision(NamedTuple):
    """The common decision of all processes: whether any was asked to stop, whether the leader's
    checkpoint is due, and the seconds of the leader's clock.
    """

    is_stopped: bool
    is_save_due: bool
    seconds: float


@dataclass(frozen=True)
class Processes(Rank):
    """The processes of a run, of which this is one; for a single process, all methods are no-ops
    without cost.

    Every method is collective: all processes call it at the same place.

    Raises (every method):
        LostProcessError: another process ended.
    """

    def devices(self, device: torch.device) -> list[str]:
        """The device name of every process, by number."""
        name = device.type
        if device.type == "cuda":
            name = torch.cuda.get_device_name(device)
        names = [name] * self.total
        if self.total > 1:
            dist.all_gather_object(names, name)
        return names

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor (all of one type and device) by its sum over the processes, in one
        message.
        """
        if self.total == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        try:
            dist.all_reduce(flat)
        except RuntimeError as error:
            raise LostProcessError("another process of this run is gone") from error
        for tensor, part in zip(
            tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True
        ):
            tensor.copy_(part.view_as(tensor))

    def decide(
        self, *, is_stopped: bool, is_save_due: bool = False, seconds: float = 0.0
    ) -> Decision:
        """The common decision, from the state of each process: signals and clocks differ between
        processes.
        """
        # On the CPU, so that no process waits for a device.
        shared = torch.tensor(
            [is_stopped, self.leads and is_save_due, self.leads * seconds], dtype=torch.float64
        )
        self.add_up([shared])
        num_stopped, is_due, leader_seconds = shared.tolist()
        return Decision(num_stopped > 0, is_due > 0, leader_seconds)

    def any(self, flag: bool) -> bool:
        return self.decide(is_stopped=flag).is_stopped

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """The leader executes the body first; the other processes execute it after the leader has
        finished.
        """
        if not self.leads:
            self.any(False)
        yield
        if self.leads:
            self.any(False)


@contextmanager
def joined(device: torch.device, rank: Rank) -> Iterator[Processes]:
    """A context with the processes of a run, after all have come."""
    if rank.total == 1:
        yield Processes()
        return
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=_TIMEOUT
    )
    yield Processes(**vars(rank))
    # The leader leaves last: one that still receives loses what was sent if the sender is gone.
    with suppress(RuntimeError):
        dist.broadcast(torch.zeros(1), src=0)
    # Not after an error: the others notice it when this process ends, and by then it has said why.
    dist.destroy_process_group()
