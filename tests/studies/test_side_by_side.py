import pytest
from toy_reports import toy_report

from albert_lab.cost import rounds
from albert_lab.cost.rounds import Measured, Measurement
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.studies import experiment, side_by_side, study
from albert_lab.studies.side_by_side import SideBySide

SPEED = "tokens_per_second"


def toy_measured(*speeds: float) -> Measured:
    measurements = tuple(Measurement(training=speed, inference=3 * speed, matrix_products=1e9) for speed in speeds)
    return Measured("cpu", "cpu", "fp32", 1, measurements=measurements)


@pytest.fixture
def folder(tmp_path):
    return toy_report(tmp_path / "sharing", experiment.named("sharing"), seeds=2)


def measured_rows(folder, monkeypatch, factor: float = 10.0) -> SideBySide:
    """Measure all rows: the row at each place has ten more tokens/s than the one before."""
    examples = study.read(folder).examples
    answers = [toy_measured(100 + factor * place, 110 + factor * place) for place in range(len(examples))]
    monkeypatch.setattr(rounds, "measure_speeds", lambda configs, **_: answers[: len(configs)])
    return side_by_side.measure_rows(examples, number=2, seconds=0.1, say=lambda line: None)


def test_every_row_gets_its_rounds_in_place_of_the_speed_of_its_runs(folder, monkeypatch):
    before = study.read(folder).rows[1]
    assert before.compared(SPEED) == before.spread(SPEED)
    side_by_side.write(folder, measured_rows(folder, monkeypatch))
    rows = study.read(folder).rows
    assert [row.rounds[SPEED][0] for row in rows] == [100 + 10 * place for place in range(len(rows))]
    speed = rows[1].compared(SPEED)
    assert speed is not None
    assert (speed.mean, speed.n) == (115, 2)
    assert rows[1].spread(SPEED) == before.spread(SPEED)


def test_a_measurement_that_lacks_a_row_with_runs_does_not_count(folder, monkeypatch):
    result = measured_rows(folder, monkeypatch)
    side_by_side.write(folder, result.model_copy(update={"rows": result.rows[1:]}))
    assert not any(row.rounds for row in study.read(folder).rows)


def test_all_rows_are_measured_with_the_machine_settings_of_the_first(folder, monkeypatch):
    records = study.read(folder).examples
    machine = records[0].config.machine.model_copy(update={"threads": 7})
    records[0] = records[0].model_copy(update={"config": records[0].config.model_copy(update={"machine": machine})})
    asked = []

    def answer(configs, **_given):
        asked.extend(configs)
        return [toy_measured(1.0)] * len(configs)

    monkeypatch.setattr(rounds, "measure_speeds", answer)
    side_by_side.measure_rows(records, number=1, seconds=0.1, say=lambda line: None)
    assert len(asked) == len(records)
    assert {config.machine.threads for config in asked} == {7}


def test_nothing_is_kept_if_a_row_cannot_be_measured(folder, monkeypatch):
    records = study.read(folder).examples
    answers = [toy_measured(1.0)] * (len(records) - 1) + [Measured(failure="no memory")]
    monkeypatch.setattr(rounds, "measure_speeds", lambda configs, **_: answers)
    with pytest.raises(ConfigError, match=f"{records[-1].name} was not measured: no memory"):
        side_by_side.measure_rows(records, number=1, seconds=0.1, say=lambda line: None)


def test_a_damaged_measurement_is_an_error_with_a_remedy(folder):
    (folder / "throughput.json").write_text("{}")
    with pytest.raises(DamagedFileError, match="remove it"):
        study.read(folder)
