import math

import pytest

from albert_lab.report.speedups import INFERENCE, speedups
from albert_lab.studies.table import Row


def row(model: str, *speeds: float) -> Row:
    runs = [{"run": f"{model}-{index}", "tokens_per_second": speed} for index, speed in enumerate(speeds)]
    return Row({"model": model}, {"model": model}, runs, {})


def test_a_speed_up_is_the_ratio_of_mean_throughputs():
    table = [row("BERT-large", 100.0, 300.0), row("ALBERT-large", 340.0), row("ALBERT-xxlarge")]
    assert speedups(table, {"model": "BERT-large"}) == [1.0, 1.7, None]


def test_without_the_reference_row_there_is_no_speed_up():
    assert speedups([row("ALBERT-large", 340.0)], {"model": "BERT-large"}) == [None]
    assert speedups([row("BERT-large"), row("ALBERT-large", 340.0)], {"model": "BERT-large"}) == [None, None]


def test_the_speed_up_of_inference_is_separate_and_missing_if_not_timed():
    timed = {"run": "timed", "tokens_per_second": 100.0, INFERENCE: 300.0}
    table = [
        Row({"model": model}, {"model": model}, [timed | {INFERENCE: speed}], {})
        for model, speed in (("BERT-large", 300.0), ("ALBERT-large", 330.0), ("ALBERT-xxlarge", math.nan))
    ]
    table.append(row("BERT-base", 100.0))
    assert speedups(table, {"model": "BERT-large"}, INFERENCE) == [1.0, pytest.approx(1.1), None, None]
