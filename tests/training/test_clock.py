import json
from contextlib import suppress

import pytest
import torch

from albert_lab.training.device import Clock

CPU = torch.device("cpu")


class FakeTime:
    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_training_time_counts_only_training_and_total_time_everything():
    time = FakeTime()
    clock = Clock(CPU, time)
    time.sleep(5)  # compilation
    with clock.training():
        time.sleep(2)
        assert clock.training_seconds == 2
    time.sleep(7)  # evaluation
    with suppress(ZeroDivisionError), clock.training():
        time.sleep(3)
        raise ZeroDivisionError
    assert (clock.training_seconds, clock.total_seconds) == (5, 17)


def test_a_clock_continues_from_a_saved_state():
    time = FakeTime()
    first = Clock(CPU, time)
    with first.training():
        time.sleep(10)
    time.sleep(2)
    saved = json.loads(json.dumps(first.state_dict()))
    time.sleep(500)  # lost with the process, and no process ran
    second = Clock(CPU, time)
    time.sleep(1)
    second.load_state_dict(saved)
    with second.training():
        time.sleep(4)
    assert (second.training_seconds, second.total_seconds) == (14, 17)


def test_work_of_an_asynchronous_device_is_counted_where_it_was_started(
    monkeypatch: pytest.MonkeyPatch,
):
    time, queued = FakeTime(), [0.0]

    def synchronize(device: torch.device) -> None:
        time.sleep(queued.pop())

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    clock = Clock(torch.device("cuda"), time)
    queued[:] = [30]  # an evaluation without waiting
    with clock.training():
        queued[:] = [6]  # a step without waiting
    assert (clock.training_seconds, clock.total_seconds) == (6, 36)
