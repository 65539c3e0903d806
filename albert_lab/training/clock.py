"""The two clocks of a run: training seconds and total seconds."""

import time as system_time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Clock:
    """Counts training seconds inside `training()`, and total seconds since it was created.

    It waits for an asynchronous device on entry and exit, so that the device's work is counted where it was started. A
    clock that loads the state of another clock continues from it.
    """

    def __init__(self, device: torch.device, time: Callable[[], float] = system_time.perf_counter):
        self._device = device
        self._time = time
        self._created = time()
        self._earlier_seconds = 0.0
        self._training_seconds = 0.0
        self._training_since: float | None = None

    @contextmanager
    def training(self) -> Iterator[None]:
        """Context in which the training clock runs."""
        assert self._training_since is None, "the training clock is already running"
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
        running = 0.0 if self._training_since is None else self._time() - self._training_since
        return self._training_seconds + running

    @property
    def total_seconds(self) -> float:
        return self._earlier_seconds + self._time() - self._created

    def state_dict(self) -> dict[str, float]:
        return {"training_seconds": self.training_seconds, "total_seconds": self.total_seconds}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from another clock's state; the seconds since this one was created are added."""
        self._training_seconds = state["training_seconds"]
        self._earlier_seconds = state["total_seconds"]
