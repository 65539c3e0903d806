import numpy as np
import pytest

from albert_lab.cost import growth, rounds
from albert_lab.cost.rounds import Measured, Measurement
from albert_lab.errors import ConfigError
from albert_lab.figures import drawing
from albert_lab.figures import growth as figure


def measured_as(monkeypatch, seconds_of_step):
    """Lets each configuration take the seconds a step that a function gives; None: it cannot be measured."""

    def measure(candidates, *, rounds, **_):
        found = []
        for config in (candidate.config for candidate in candidates):
            seconds = seconds_of_step(config)
            speed = config.batch_size * config.max_sequence_length / (seconds or 1)
            turns = tuple(Measurement(speed, speed, 1e9) for _ in range(rounds))
            measured = Measured("cpu", "cpu", "fp32", 1, None, 1, turns)
            found.append(measured if seconds else Measured(failure="no memory"))
        return found

    monkeypatch.setattr(rounds, "measure", measure)


def grow(*sizes: str) -> growth.Growth:
    return growth.measure(["scale=smoke"], sizes=sizes, number=3, seconds=0.1, say=lambda _line: None)


def test_a_step_whose_time_is_the_square_of_the_batch_grows_with_the_power_of_two(monkeypatch):
    measured_as(monkeypatch, lambda config: config.batch_size**2)
    found = grow("batch_size")
    values = [point.value for point in found.points]
    assert values == sorted(set(values))
    assert len(values) >= 3
    assert [point.time_ratio.median for point in found.points if point.time_ratio] == pytest.approx(
        [(value / values[0]) ** 2 for value in values]
    )
    assert [point.flops_ratio for point in found.points] == pytest.approx([value / values[0] for value in values])
    assert "grows with the power 2.00 of it" in " ".join(found.as_text().split())


def test_values_that_were_not_measured_are_named_and_left_out_of_the_figure(monkeypatch):
    measured_as(monkeypatch, lambda config: None if config.model.num_layers > 4 else config.model.num_layers)
    found = grow("model.num_layers")
    assert 0 < found.num_failed < len(found.points)
    assert f"model.num_layers={found.points[-1].value} was not measured: no memory." in found.as_text()
    drawn = figure.draw(found)
    assert drawn is not None
    (panel,) = drawn.axes
    measured = [point.value for point in found.points if not point.failure]
    assert [np.asarray(line.get_xdata()).tolist() for line in panel.get_lines()][-1] == measured


def test_a_figure_without_data_is_not_drawn(monkeypatch, tmp_path):
    measured_as(monkeypatch, lambda config: None)
    assert drawing.write(lambda: figure.draw(grow("batch_size")), tmp_path, "growth") == []


@pytest.mark.parametrize("size", growth.SIZES)
def test_every_size_has_a_configuration_at_each_of_its_values(monkeypatch, size):
    measured_as(monkeypatch, lambda config: 1.0)
    assert len(grow(size).points) >= 2


def test_an_unknown_size_is_refused():
    with pytest.raises(ConfigError, match="--size=dropout is unknown"):
        grow("dropout")
