from dataclasses import replace

import pytest

from albert_lab.config.compose import load
from albert_lab.cost import benchmark, counts, rounds
from albert_lab.cost.rounds import Measured, Measurement
from albert_lab.errors import ConfigError
from albert_lab.studies import compared

SMOKE = ["scale=smoke"]


def toy_measured(*speeds: float) -> Measured:
    measurements = tuple(Measurement(training=speed, inference=3 * speed, matrix_products=1e9) for speed in speeds)
    return Measured("cpu", "cpu", "fp32", 2, None, peak_memory_bytes=5 << 20, measurements=measurements)


def run(monkeypatch, *measured: Measured, overrides=SMOKE) -> benchmark.Benchmark:
    monkeypatch.setattr(rounds, "measure_speeds", lambda configs, **_: list(measured))
    return benchmark.run(compared.configurations(overrides), number=4, seconds=0.1, say=lambda line: None)


def test_medians_have_quartiles_and_ratios_are_taken_within_rounds(monkeypatch):
    # The machine is half as fast in the last round: the medians see it, the ratios do not.
    result = run(monkeypatch, toy_measured(100, 100, 100, 50), toy_measured(300, 300, 300, 150))
    first, second = result.as_dict()["rows"]
    assert (second["tokens_per_second"]["median"], second["tokens_per_second"]["low"]) == (300, 262.5)
    assert second["speedup"]["values"] == (3, 3, 3, 3)
    assert (second["inference_speedup"]["low"], second["inference_speedup"]["high"]) == (3, 3)
    assert first["speedup"]["values"] == (1, 1, 1, 1)
    flops = counts.count_flops(load([*SMOKE, "embedding_size=8"])).training
    assert second["utilisation"]["median"] == pytest.approx(300 * flops / 1e9)


def test_a_configuration_that_was_not_measured_has_its_counts_and_a_reason(monkeypatch):
    result = run(monkeypatch, toy_measured(100), Measured(failure="its process ended with signal 9"))
    assert result.num_failed == 1
    row = result.as_dict()["rows"][1]
    assert row["parameters"] > 0
    assert row["estimated_memory_bytes"] > 0
    assert (row["tokens_per_second"], row["speedup"], row["measured_memory_bytes"]) == (None, None, None)
    assert "ALBERT-base was not measured: its process ended with signal 9." in result.as_text()


def test_nothing_is_compared_with_a_first_line_that_was_not_measured(monkeypatch):
    _, second = run(monkeypatch, Measured(failure="no memory"), toy_measured(100)).lines
    assert second.tokens_per_second is not None
    assert second.speedup is None


def test_the_estimate_is_for_the_measured_device_and_precision(monkeypatch):
    dropped = [*SMOKE, "dropout=0.1", "embedding_size=8", "sharing=all-shared"]
    one = toy_measured(100)
    (line,) = run(monkeypatch, one, overrides=dropped).lines
    (halved,) = run(monkeypatch, replace(one, precision="bf16"), overrides=dropped).lines
    cpu = load([*dropped, "machine.device=cpu", "machine.precision=fp32"])
    assert line.estimated_memory_bytes == counts.estimate_training_memory(cpu).total
    assert halved.estimated_memory_bytes != line.estimated_memory_bytes


def test_by_default_bert_and_albert_are_compared_and_others_by_name():
    assert list(compared.configurations(["scale=gpu"])) == ["BERT-base", "ALBERT-base"]
    result = compared.configurations(["scale=paper", "model=ALBERT-xxlarge,BERT-xlarge", "batch_size=8"])
    assert list(result) == ["ALBERT-xxlarge", "BERT-xlarge"]
    assert result["BERT-xlarge"].model.hidden_size == result["BERT-xlarge"].embedding_size == 2048
    assert result["ALBERT-xxlarge"].batch_size == 8


@pytest.mark.parametrize(
    ("overrides", "labels"),
    [
        (["sharing=all-shared,not-shared"], ["sharing=all-shared", "sharing=not-shared"]),
        (["embedding_size=8,16"], ["embedding_size=8", "embedding_size=16"]),
        (["model=tiny", "embedding_size=8"], ["tiny E=8 all-shared"]),
        (["batch_size=2,4"], ["batch_size=2", "batch_size=4"]),
    ],
)
def test_a_sweep_compares_its_configurations(overrides, labels):
    assert list(compared.configurations([*SMOKE, *overrides])) == labels


def test_rows_and_sizes_can_be_mixed_and_an_unknown_model_gets_both_kinds_of_names():
    assert list(compared.configurations([*SMOKE, "model=BERT-large,tiny"])) == ["BERT-large", "tiny"]
    with pytest.raises(ConfigError, match=r"model=BERT-huge is unknown \(allowed: BERT-base, .*, xxlarge\)"):
        compared.configurations([*SMOKE, "model=BERT-huge"])
    with pytest.raises(ConfigError, match="sharing=groups: the rows of the table set this key"):
        compared.configurations([*SMOKE, "model=BERT-large", "sharing=groups"])
