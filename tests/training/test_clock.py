import json

import pytest
import torch

from albert_lab.training.device import Clock

CPU = torch.device("cpu")


class FakeTime:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def test_training_time_counts_only_training_and_total_time_everything(time: FakeTime):
    clock = Clock(CPU, time)
    time.sleep(5)  # compilation
    with clock.training():
        time.sleep(2)
    time.sleep(7)  # evaluation
    with clock.training():
        time.sleep(3)
    assert clock.training_seconds == 5
    assert clock.total_seconds == 17


def test_a_running_clock_can_be_read(time: FakeTime):
    clock = Clock(CPU, time)
    with clock.training():
        time.sleep(2)
        assert clock.training_seconds == 2
        time.sleep(1)
        assert clock.training_seconds == 3
    time.sleep(4)
    assert clock.training_seconds == 3


def test_a_clock_continues_from_a_saved_state(time: FakeTime):
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
    assert second.training_seconds == 14
    assert second.total_seconds == 17


def test_training_that_fails_is_counted_too(time: FakeTime):
    def diverge() -> None:
        time.sleep(2)
        raise ZeroDivisionError

    clock = Clock(CPU, time)
    with pytest.raises(ZeroDivisionError), clock.training():
        diverge()
    assert clock.training_seconds == 2
    with clock.training():
        time.sleep(1)
    assert clock.training_seconds == 3


def test_work_of_an_asynchronous_device_is_counted_where_it_was_started(
    time: FakeTime, monkeypatch: pytest.MonkeyPatch
):
    queued = [0.0]

    def synchronize(device: torch.device) -> None:
        assert device.type == "cuda"
        time.sleep(queued[0])
        queued[0] = 0.0

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    clock = Clock(torch.device("cuda"), time)
    queued[0] = 30  # an evaluation without waiting
    with clock.training():
        queued[0] = 6  # a step without waiting
    assert clock.training_seconds == 6
    assert clock.total_seconds == 36
