import pytest
from toy import toy_config

from albert_lab.cost import rounds


def test_every_configuration_is_measured_each_round_or_has_a_reason(tmp_path):
    config = toy_config(tmp_path)
    other = config.model_copy(update={"optimizer": config.optimizer.model_copy(update={"name": "shampoo"})})
    said: list[str] = []
    result, failed = rounds.measure_speeds([config, other], rounds=2, seconds=0.01, say=said.append)
    assert (result.device, result.precision, result.threads) == ("cpu", "fp32", 1)
    assert len(result.measurements) == 2
    assert all(
        min(measurement.training, measurement.inference, measurement.matrix_products) > 0
        for measurement in result.measurements
    )
    assert result.peak_memory_bytes is not None
    assert result.peak_memory_bytes > 0
    assert "optimizer=shampoo is unknown" in failed.failure
    assert not failed.measurements
    assert said[-1] == "round 2 of 2"


def test_a_configuration_that_exceeds_memory_is_not_started(tmp_path):
    config = toy_config(tmp_path, "model.hidden_size=400000000")
    (failed,) = rounds.measure_speeds([config], rounds=1, seconds=0.01, say=lambda _line: None)
    assert "GiB, and this machine has" in failed.failure


def test_a_killed_child_is_reported_and_no_child_is_left_running(tmp_path):
    with rounds.started_children([toy_config(tmp_path)] * 2) as children:
        children[0].process.kill()
        with pytest.raises(rounds.ChildError, match="signal 9"):
            children[0].ask({})
    assert all(child.process.poll() is not None for child in children)
