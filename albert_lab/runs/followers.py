"""The processes that train one run together: started by torchrun, or by the first process."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from albert_lab import signals
from albert_lab.config.schema import RunConfig
from albert_lab.errors import ConfigError, LostProcessError
from albert_lab.rank import Rank

if TYPE_CHECKING:  # they load torch, and the thread count must be set before that
    import torch

    from albert_lab.training.processes import Processes, Rendezvous

# Time for them to end before they are killed.
_END_SECONDS = 10.0


def find_rendezvous(config: RunConfig, rank: Rank, is_stopped: Callable[[], bool]) -> "Rendezvous | None":
    """The rendezvous of the processes of a run; None if no others were started yet.

    Raises:
        ConfigError: the number of processes does not divide the batch.
        LostProcessError: the other processes cannot be reached, or this process was asked to stop before.
    """
    if rank.of == 1:
        return None
    from albert_lab.training.processes import Rendezvous

    if config.batch_size % rank.of:
        raise ConfigError(f"WORLD_SIZE={rank.of} does not divide batch_size={config.batch_size}")
    return Rendezvous.elsewhere(rank, is_stopped)


@contextmanager
def together(
    folder: Path, config: RunConfig, rendezvous: "Rendezvous | None", is_stopped: Callable[[], bool]
) -> Iterator[tuple["Processes | None", "torch.device"]]:
    """A context with the processes of a run, after all have joined, and the device of this process.

    Without one, this process starts the others according to machine.processes, and they end with it.

    Args:
        rendezvous: that of processes that were started from outside.
        is_stopped: polled while waiting for others; if it returns True, there are no processes.

    Raises:
        LostProcessError: another process was lost.
        RuntimeError: another process failed.
    """
    from albert_lab.training.device import choose_device
    from albert_lab.training.processes import HOST, Processes, Rendezvous

    size, name = config.machine.processes, config.machine.device
    if rendezvous is None and size == 1:
        device = choose_device(name)
        yield Processes(device), device
        return
    with ExitStack() as stack:
        check = _nothing_to_check
        if rendezvous is None:
            rendezvous, port = Rendezvous.here(size)
            check = stack.enter_context(_started(folder, size, HOST, port))
        device = choose_device(name, rendezvous.rank)
        processes = rendezvous.join(device, is_stopped, check)
        try:
            yield processes, device
        except Exception as error:
            if processes:
                processes.fail(error)
            raise
        finally:
            if processes:
                processes.leave()


def _nothing_to_check() -> None:
    """The launcher that started the others watches them."""


@contextmanager
def _started(folder: Path, size: int, host: str, port: int) -> Iterator[Callable[[], None]]:
    """A context in which processes 1 to size - 1 of a run are running; yields a check that raises if one has ended.

    Raises:
        LostProcessError: by the check, if another process was lost.
        RuntimeError: by the check, if another process failed.
    """
    address = {"MASTER_ADDR": host, "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)}
    children: list[subprocess.Popen[bytes]] = []

    def check() -> None:
        for number, child in enumerate(children, 1):
            if child.poll() == 1:
                raise RuntimeError(f"process {number} of this run failed; see its message above")
            if child.poll() is not None:
                raise LostProcessError(f"process {number} of this run ended with exit code {child.returncode}")

    try:
        for number in range(1, size):
            rank = {"RANK": str(number), "LOCAL_RANK": str(number), signals.PARENT: str(os.getpid())}
            with signals.held_back():  # until it handles signals
                children.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "albert_lab.runs.worker", str(folder)],
                        env=os.environ | address | rank,
                        stdin=subprocess.DEVNULL,
                    )
                )
        yield check
    finally:
        for child in children:  # has no effect on finished ones; others may still wait for this process
            child.terminate()
        deadline = time.monotonic() + _END_SECONDS
        for child in children:
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
