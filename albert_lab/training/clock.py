"""The two clocks of a run: seconds of training, and seconds in all."""

import time as system_time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def synchronize(device: torch.device) -> None:
    """Wait for a device that runs behind the host."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Clock:
    """Counts training seconds inside `training()`, and total seconds from its making on.

    A device that runs behind the host is waited for on the way in and out, so that its work is counted where it was
    asked for. A clock that takes on the state of another carries on from there.
    """

    def __init__(self, device: torch.device, time: Callable[[], float] = system_time.perf_counter):
        self._device = device
        self._time = time
        self._made = time()
        self._earlier_seconds = 0.0
        self._training_seconds = 0.0
        self._training_since: float | None = None

    @contextmanager
    def training(self) -> Iterator[None]:
        """Context in which the training clock runs."""
        assert self._training_since is None, "the training clock runs already"
        synchronize(self._device)
        self._training_since = self._time()
        try:
            yield
            synchronize(self._device)
        finally:
            self._training_seconds = self.training_seconds
            self._training_since = None

    @property
    def training_seconds(self) -> float:
        """Seconds of training, up to now; a device that runs behind is not waited for."""
        running = 0.0 if self._training_since is None else self._time() - self._training_since
        return self._training_seconds + running

    @property
    def total_seconds(self) -> float:
        """Seconds since the clock was made, and before that of the clocks it carries on."""
        return self._earlier_seconds + self._time() - self._made

    def state_dict(self) -> dict[str, float]:
        """Both clocks, for a checkpoint."""
        return {"training_seconds": self.training_seconds, "total_seconds": self.total_seconds}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Carry on from another clock's state; the seconds since this one was made count on top."""
        self._training_seconds = state["training_seconds"]
        self._earlier_seconds = state["total_seconds"]
