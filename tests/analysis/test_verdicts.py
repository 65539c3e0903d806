import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_frames import toy_frame

from albert_lab.analysis.frame import PAPER
from albert_lab.analysis.verdicts import can_tell, verdicts
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study

A, B, C, D = ({"size": label} for label in "1234")
ROWS = pd.DataFrame({"row": [*"abcd"], "size": [*"1234"], f"{PAPER}sop_accuracy": ["80", "82", "83", ""]})
LOW, MIDDLE, HIGH = [59.0, 60, 61], [65.0, 66, 67.1], [70.0, 71, 72]


def asked(*claims: dict) -> Study:
    content = [{"quote": "q", "metric": "sop_accuracy", **claim} for claim in claims]
    sizes = ["1", "2", "3"] + ["4"] * any("[" in str(claim.get("row")) for claim in claims)
    grid = {"size": sizes}
    made = {"name": "toy", "title": "toy", "source": "", "grid": grid, "claims": content}
    return Study(Experiment.model_validate(made), [], [])


def decide(claim: dict, *samples: list[float], metric: str = "sop_accuracy", floor: float = 50.0, **more) -> Any:
    values = {metric: dict(zip("abcd", samples, strict=False))}
    table = verdicts(asked({"metric": metric, **claim}), toy_frame(values, rows=ROWS, floor=floor, **more))
    return table.iloc[0]


@pytest.mark.parametrize(
    ("claim", "samples", "word"),
    [
        ({"check": "greater", "row": C, "than": A}, (LOW, MIDDLE, HIGH), "supported"),
        ({"check": "greater", "row": A, "than": C}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "greater", "row": A, "than": B}, (LOW, [59.1, 60, 61.2], HIGH), "undecided"),
        ({"check": "greater", "row": C, "than": 65}, (LOW, MIDDLE, HIGH), "supported"),
        ({"check": "greater", "row": A, "than": 65}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "greater", "row": [D, A], "than": [C, B]}, (LOW, [66, 67, 68.1], HIGH, [80, 81, 82]), "supported"),
        ({"check": "greater", "row": [B, A], "than": [C, B]}, (LOW, [68, 69, 70.1], HIGH), "supported"),
        ({"check": "ordered", "order": [C, B, A]}, (LOW, MIDDLE, HIGH), "supported"),
        ({"check": "ordered", "order": [C, A, B]}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "ordered", "axis": "size", "direction": "rising"}, (LOW, MIDDLE, HIGH), "supported"),
        ({"check": "ordered", "axis": "size", "direction": "rising"}, (LOW, HIGH, MIDDLE), "not supported"),
        ({"check": "ordered", "axis": "size", "direction": "falling"}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "ordered", "axis": "size", "peak": "2"}, (LOW, HIGH, MIDDLE), "supported"),
        ({"check": "ordered", "axis": "size", "peak": "2"}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "within", "row": A, "of": B, "margin": 4}, (LOW, [60, 61, 62.1], HIGH), "supported"),
        ({"check": "within", "row": A, "of": C, "margin": 4}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "at-chance", "row": A}, ([49.0, 50, 51], MIDDLE, HIGH), "supported"),
        ({"check": "at-chance", "row": B}, ([49.0, 50, 51], MIDDLE, HIGH), "not supported"),
        ({"check": "ratio", "row": C, "to": A, "low": 1.1, "high": 1.3}, (LOW, MIDDLE, HIGH), "supported"),
        ({"check": "ratio", "row": C, "to": A, "low": 1.3}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "ratio", "row": C, "to": A, "low": 1}, ([0.0, 1, 2], MIDDLE, HIGH), "undecided"),
        ({"check": "greater", "row": A, "than": B}, ([60.0] * 3, [60.0] * 3, [60.0] * 3), "not supported"),
    ],
)
def test_a_claim_is_decided_as_its_numbers_are(claim, samples, word):
    assert decide(claim, *samples)["verdict"] == word


def test_a_verdict_has_the_effect_with_its_interval_and_the_papers():
    line = decide({"check": "greater", "row": C, "than": A}, LOW, MIDDLE, HIGH)
    assert (line["effect"], line["paper"], line["compared"], line["kind"]) == (11, 3, "c − a", "difference")
    assert line["low"] < 11 < line["high"]
    line = decide({"check": "ratio", "row": C, "to": A, "low": 1.1}, LOW, MIDDLE, HIGH)
    assert line["effect"] == pytest.approx(71 / 60, abs=1e-3)
    assert line["paper"] == pytest.approx(83 / 80)
    near = {"check": "within", "row": A, "of": B, "margin": 2}
    assert "within 2 nats of" in decide(near, LOW, MIDDLE, HIGH, metric="sop_loss")["check"]


@pytest.mark.parametrize(
    ("samples", "reason"), [((LOW, MIDDLE), "not run"), (([49.0, 50, 51], MIDDLE, [50.5, 49, 50.6]), "not learnt")]
)
def test_what_was_not_run_or_not_learnt_cannot_tell(samples, reason):
    line = decide({"check": "greater", "row": C, "than": A}, *samples)
    assert (line["verdict"], line["can_tell"]) == ("cannot tell", False)
    assert reason in line["why"]


def test_chance_is_told_only_if_some_row_learns_the_score_and_the_row_learnt_its_own_task():
    chance = [49.0, 50, 51]
    assert decide({"check": "at-chance", "row": A}, chance, chance, chance)["verdict"] == "cannot tell"
    claim = {"check": "at-chance", "row": A, "trained_for": "nsp_accuracy"}
    for of_nsp, word in ((chance, "cannot tell"), (HIGH, "supported")):
        values = {"sop_accuracy": {"a": chance, "b": HIGH}, "nsp_accuracy": {"a": of_nsp, "b": chance}}
        assert verdicts(asked(claim), toy_frame(values, rows=ROWS, floor=50.0)).loc[0, "verdict"] == word


def test_a_task_that_does_not_count_cannot_tell():
    line = decide({"check": "greater", "row": C, "than": A}, LOW, MIDDLE, HIGH, metric="mnli", tasks={"mnli": "mnli"})
    assert (line["verdict"], line["can_tell"]) == ("cannot tell", False)


def test_a_single_seed_decides_nothing():
    line = decide({"check": "greater", "row": C, "than": A}, [60.0], [65.0], [70.0])
    assert (line["verdict"], line["effect"]) == ("undecided", 10)


def test_rows_of_the_same_runs_cannot_tell():
    frame = toy_frame({"sop_accuracy": {"a": LOW, "b": HIGH}}, rows=ROWS, floor=50.0)
    frame.numbers["run"] = [f"run-{seed}" for seed in frame.numbers["seed"]]
    assert verdicts(asked({"check": "greater", "row": B, "than": A}), frame).loc[0, "verdict"] == "cannot tell"


def test_holm_corrects_over_the_claims_of_a_study():
    frame = toy_frame({"sop_accuracy": {"a": LOW, "b": [60.1, 61, 62.6], "c": HIGH}}, rows=ROWS, floor=50.0)
    claim = {"check": "greater", "row": B, "than": A}
    alone = verdicts(asked(claim), frame).loc[0, "p"]
    several = verdicts(asked(*[claim] * 4), frame)["p"]
    assert several.tolist() == pytest.approx([min(1, 4 * alone)] * 4)


def test_claims_without_effects_are_supported_as_rarely_as_the_level_says():
    rng = np.random.default_rng(0)
    claim, words = asked({"check": "greater", "row": B, "than": A}), []
    for _ in range(100):
        values = {row: (60 + rng.normal(0, 1, 3)).tolist() for row in "abc"}
        words.append(verdicts(claim, toy_frame({"sop_accuracy": values}, rows=ROWS, floor=50.0)).loc[0, "verdict"])
    assert words.count("supported") <= 7
    assert words.count("not supported") <= 7


@settings(max_examples=50)
@given(st.floats(-5, 5), st.floats(0.01, 5), st.floats(0.01, 5))
def test_a_scale_can_tell_if_half_its_interval_is_at_most_half_the_effect(center, half, size):
    assert can_tell(center - half, center + half, size) == (half <= size / 2) or math.isclose(half, size / 2)
    assert can_tell(center - half, center + half, math.nan)
    assert not can_tell(math.nan, math.nan, size)
