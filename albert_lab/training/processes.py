"""The processes of one run: they divide micro-batches, sum gradients, and make common decisions."""

# pyright: reportPrivateImportUsage=false
# torch.distributed has no public names for its stores.

import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

from albert_lab.errors import LostProcessError
from albert_lab.rank import ALONE, Rank
from albert_lab.training.device import device_name

_Part = TypeVar("_Part")
_Check = Callable[[], None]
HOST = "127.0.0.1"
# Seconds that a process waits for another before that one counts as lost.
PEER_SECONDS = "ALBERT_LAB_PEER_SECONDS"
_DEFAULT_SECONDS = 1800
_POLL_SECONDS = 0.05
# Seconds that processes wait for the reason that a lost process may have written before it ended.
_REASON_SECONDS = 2.0


@dataclass(frozen=True)
class Decision:
    """The common decision of all processes: whether any was asked to stop, and the time of the leader's clock."""

    is_stopped: bool
    is_save_due: bool
    seconds: float


class Processes:
    """The processes of a run, of which this is one; for a single process, all methods are no-ops without cost.

    Every method except `deal` and `leave` is collective: all processes call it at the same place.

    Raises (every collective method):
        LostProcessError: another process ended.
        RuntimeError: another process failed; the text is its reason.
    """

    def __init__(self, device: torch.device | None = None, rank: Rank = ALONE, store: dist.Store | None = None) -> None:
        self._device = device or torch.device("cpu")
        self.rank = rank
        self._store = store

    @property
    def leads(self) -> bool:
        return self.rank.leads

    @property
    def size(self) -> int:
        return self.rank.of

    @property
    def places(self) -> list[tuple[str, str]]:
        """Host and device name of every process, by number."""
        if self._store is None:
            return [place(self._device)]
        places = (json.loads(self._store.get(f"place/{number}")) for number in range(self.size))
        return [(host, device) for host, device in places]

    def deal(self, parts: Sequence[_Part]) -> Sequence[_Part]:
        """The parts that this process computes."""
        return parts[self.rank.number :: self.size]

    def add_up(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace each tensor (all of one type and device) by its sum over the processes, in one message."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        self._reduce(flat)
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def decide(self, *, is_stopped: bool, is_save_due: bool, seconds: float) -> Decision:
        """The common decision, from the state of each process: signals and clocks differ between processes."""
        if self.size == 1:
            return Decision(is_stopped, is_save_due, seconds)
        # On the CPU, so that no process waits for a device.
        shared = torch.tensor([is_stopped, self.leads and is_save_due, self.leads * seconds], dtype=torch.float64)
        self._reduce(shared)
        stopped, due, of_leader = shared.tolist()
        return Decision(stopped > 0, due > 0, of_leader)

    def any(self, flag: bool) -> bool:
        return self.decide(is_stopped=flag, is_save_due=False, seconds=0.0).is_stopped

    def agree(self, number: int) -> bool:
        """Whether the number is the same in all processes."""
        if self.size == 1:
            return True
        ends = torch.tensor([number, -number])
        self._reduce(ends, dist.ReduceOp.MAX)
        return ends.tolist() == [number, -number]

    def smallest(self, number: int) -> int:
        if self.size == 1:
            return number
        smallest = torch.tensor([number])
        self._reduce(smallest, dist.ReduceOp.MIN)
        return int(smallest)

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """The leader executes the body first; the other processes execute it after the leader has finished."""
        if not self.leads:
            self.any(False)
        yield
        if self.leads:
            self.any(False)

    def leave(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()

    def fail(self, error: Exception) -> None:
        """Send the leader the reason why this process ends; the leader's own failure is written to the run's folder."""
        if self._store is not None and not self.leads and not isinstance(error, LostProcessError):
            try:
                self._store.set("failure", f"process {self.rank.number}: {str(error) or type(error).__name__}")
            except RuntimeError:  # the store ended with the leader
                return

    def _reduce(self, tensor: torch.Tensor, operation: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> None:
        try:
            dist.all_reduce(tensor, operation)
        except RuntimeError as error:
            raise missed(self._store, error) from error


class Rendezvous:
    """The place where the processes of a run find each other, before they compute together."""

    def __init__(self, rank: Rank, store: dist.Store) -> None:
        self.rank = rank
        self._store = store

    @classmethod
    def here(cls, size: int) -> tuple["Rendezvous", int]:
        """A rendezvous of processes of this machine with this process as leader, and its port for the others."""
        store = dist.TCPStore(HOST, 0, is_master=True, wait_for_workers=False, timeout=_timeout())
        return cls(Rank(0, size, 0, size), store), store.port

    @classmethod
    def elsewhere(cls, rank: Rank, is_stopped: Callable[[], bool]) -> "Rendezvous":
        """The rendezvous at MASTER_ADDR and MASTER_PORT.

        Raises:
            LostProcessError: the other processes cannot be reached, or this process was asked to stop before.
        """
        stores: list[dist.Store] = []
        errors: list[Exception] = []

        def connect() -> None:
            try:
                store, _, _ = next(dist.rendezvous("env://", rank.number, rank.of, timeout=_timeout()))
                stores.append(store)
            except (RuntimeError, OSError) as error:
                errors.append(error)

        # A thread of its own: while torch waits, this one would handle no signal.
        waiting = threading.Thread(target=connect, daemon=True)
        waiting.start()
        while waiting.is_alive():
            if is_stopped():
                raise LostProcessError("the other processes had not come")
            waiting.join(_POLL_SECONDS)
        for error in errors:
            whom = "all other processes" if rank.leads else "process 0"
            raise LostProcessError(f"{whom} cannot be reached: {error}") from error
        return cls(rank, stores[0])

    def wait_for_leader(self, is_stopped: Callable[[], bool]) -> bool:
        """Wait until the leader has prepared the data; False if this process was asked to stop before.

        Raises:
            LostProcessError: the leader ended.
        """
        while not self.rank.leads and not is_stopped():
            try:
                if self._store.check(["ready"]):
                    return True
            except RuntimeError as error:
                raise missed(None, error) from error
            time.sleep(_POLL_SECONDS)
        return self.rank.leads

    def join(self, device: torch.device, is_stopped: Callable[[], bool], check: _Check) -> Processes | None:
        """Wait for all processes; None if this process was asked to stop before.

        Args:
            check: called as often; raises an error if a process cannot join.
        """
        store, rank = self._store, self.rank
        try:
            store.set(f"place/{rank.number}", json.dumps(place(device)))
            if rank.leads:
                store.set("ready", "")
            store.add("here", 1)
            while store.add("here", 0) < rank.of:
                if is_stopped():
                    return None
                check()
                time.sleep(_POLL_SECONDS)
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            group = dist.PrefixStore("group", store)
            dist.init_process_group(backend, store=group, rank=rank.number, world_size=rank.of, timeout=_timeout())
        except LostProcessError:
            raise
        except RuntimeError as error:
            raise missed(None, error) from error
        return Processes(device, rank, store)


def missed(store: dist.Store | None, error: Exception) -> Exception:
    """The cause of a connection error: the reason that another process wrote, or its end without a reason."""
    deadline = time.monotonic() + _REASON_SECONDS
    try:
        while store is not None and time.monotonic() < deadline:
            if store.check(["failure"]):
                return RuntimeError(store.get("failure").decode())
            time.sleep(_POLL_SECONDS)
    except RuntimeError:  # the store ended with the leader
        pass
    return LostProcessError(f"another process of this run is gone ({str(error).strip().splitlines()[0]})")


def place(device: torch.device) -> tuple[str, str]:
    """This host and the name of a device: the name of the GPU, or cpu."""
    return platform.node(), device_name(device)


def _timeout() -> timedelta:
    return timedelta(seconds=float(os.environ.get(PEER_SECONDS, _DEFAULT_SECONDS)))
