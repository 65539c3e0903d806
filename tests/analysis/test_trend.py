from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from toy_frames import toy_frame

from albert_lab.analysis.trend import trend
from albert_lab.analysis.verdicts import verdicts
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study

RUNGS = {"1": 1e9, "2": 1e10, "3": 1e11, "4": 1e12}
ROWS = pd.DataFrame(
    [{"row": f"{loss}, {rung}", "variant": loss, "rung": rung} for rung in RUNGS for loss in ("none", "sop")]
)


def ladder(effects, noise=0.05):
    rng = np.random.default_rng(0)
    values = {"sop_accuracy": {}, "train_flops_per_token": {}, "tokens": {}}
    for (rung, flops), effect in zip(RUNGS.items(), effects, strict=True):
        for loss, mean in (("none", 50.0), ("sop", 50.0 + effect)):
            row = f"{loss}, {rung}"
            values["sop_accuracy"][row] = (mean + rng.normal(0, noise, 3)).tolist()
            values["train_flops_per_token"][row] = [flops / 1000] * 3
            values["tokens"][row] = [1000] * 3
    return toy_frame(values, rows=ROWS, floor=40.0)


def test_a_line_through_the_effects_has_the_slope_for_ten_times_the_compute():
    found = trend(ladder([1, 3, 5, 7]), "sop_accuracy", {"variant": "sop"}, {"variant": "none"})
    assert found.slope.effect == pytest.approx(2, abs=0.1)
    assert found.slope.low < 2 < found.slope.high
    assert found.at_one + 9 * found.slope.effect == pytest.approx(1, abs=0.3)
    assert found.points["flops"].tolist() == pytest.approx(list(RUNGS.values()))


def test_two_rungs_have_effects_and_no_trend():
    frame = ladder([1, 3, 5, 7])
    frame = replace(frame, numbers=frame.numbers[frame.numbers["row"].str.contains("1|2")])
    found = trend(frame, "sop_accuracy", {"variant": "sop"}, {"variant": "none"})
    assert len(found.points) == 2
    assert np.isnan(found.slope.effect)
    assert "three rungs" in verdict(frame, "12")["why"]


def verdict(frame, rungs="1234"):
    rows = {"row": {"variant": "sop"}, "than": {"variant": "none"}}
    claim = {"quote": "q", "metric": "sop_accuracy", "check": "trend", "direction": "rising", **rows}
    grid = {"variant": ["none", "sop"], "rung": [*rungs]}
    asked = Experiment.model_validate({"name": "toy", "title": "t", "source": "", "grid": grid, "claims": [claim]})
    return verdicts(Study(asked, [], []), frame).loc[0]


@pytest.mark.parametrize(
    ("effects", "word"), [([1, 3, 5, 7], "supported"), ([7, 5, 3, 1], "not supported"), ([1, 3, 1, 3], "undecided")]
)
def test_a_claim_on_a_trend_is_decided_by_the_slope(effects, word):
    assert verdict(ladder(effects))["verdict"] == word
