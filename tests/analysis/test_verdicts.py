import math
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_frames import Values, toy_frame

from albert_lab.analysis.frame import PAPER
from albert_lab.analysis.verdict import Effect, Form, Outcome, Reason, Verdict
from albert_lab.analysis.verdicts import verdicts
from albert_lab.studies.experiment import Experiment
from albert_lab.studies.study import Study

A, B, C, D = ({"size": label} for label in "1234")
ROWS = pd.DataFrame(
    {"row": [*"abcd"], "size": [*"1234"], f"{PAPER}sop_accuracy": ["80", "82", "83", ""]}
)
LOW, MIDDLE, HIGH = [59.0, 60, 61], [65.0, 66, 67.1], [70.0, 71, 72]


def asked(*claims: dict) -> Study:
    content = [
        {"quote": "q", **({} if "by" in claim else {"metric": "sop_accuracy"}), **claim}
        for claim in claims
    ]
    sizes = ["1", "2", "3"] + ["4"] * any("[" in str(claim.get("row")) for claim in claims)
    grid = {"size": sizes}
    made = {"name": "toy", "title": "toy", "source": "", "grid": grid, "claims": content}
    return Study.model_construct(experiment=Experiment.model_validate(made), points=(), runs=())


def judge(claim: dict, values: Mapping[str, Values], **more) -> list[Verdict]:
    """The verdicts on a claim by the values of each metric and row."""
    return verdicts(asked(claim), toy_frame(values, rows=ROWS, **{"floor": 50.0, **more}))


def decide(claim: dict, *samples: list[float], metric: str = "sop_accuracy", **more) -> Verdict:
    values = dict(zip("abcd", samples, strict=False))
    (verdict,) = judge({"metric": metric, **claim}, {metric: values}, **more)
    return verdict


@pytest.mark.parametrize(
    ("claim", "samples", "word"),
    [
        ({"check": "greater", "row": C, "than": A}, (LOW, MIDDLE, HIGH), "supported"),
        ({"check": "greater", "row": A, "than": C}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "greater", "row": A, "than": B}, (LOW, [59.1, 60, 61.2], HIGH), "undecided"),
        ({"check": "greater", "row": C, "than": 65}, (LOW, MIDDLE, HIGH), "supported"),
        ({"check": "greater", "row": A, "than": 65}, (LOW, MIDDLE, HIGH), "not supported"),
        (
            {"check": "greater", "row": [D, A], "than": [C, B]},
            (LOW, [66, 67, 68.1], HIGH, [80, 81, 82]),
            "supported",
        ),
        (
            {"check": "greater", "row": [B, A], "than": [C, B]},
            (LOW, [68, 69, 70.1], HIGH),
            "supported",
        ),
        ({"check": "ordered", "order": [C, B, A]}, (LOW, MIDDLE, HIGH), "supported"),
        ({"check": "ordered", "order": [C, A, B]}, (LOW, MIDDLE, HIGH), "not supported"),
        (
            {"check": "ordered", "axis": "size", "direction": "rising"},
            (LOW, MIDDLE, HIGH),
            "supported",
        ),
        (
            {"check": "ordered", "axis": "size", "direction": "rising"},
            (LOW, HIGH, MIDDLE),
            "not supported",
        ),
        (
            {"check": "ordered", "axis": "size", "direction": "falling"},
            (LOW, MIDDLE, HIGH),
            "not supported",
        ),
        ({"check": "ordered", "axis": "size", "peak": "2"}, (LOW, HIGH, MIDDLE), "supported"),
        ({"check": "ordered", "axis": "size", "peak": "2"}, (LOW, MIDDLE, HIGH), "not supported"),
        (
            {"check": "within", "row": A, "of": B, "margin": 4},
            (LOW, [60, 61, 62.1], HIGH),
            "supported",
        ),
        ({"check": "within", "row": A, "of": C, "margin": 4}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "at-chance", "row": A}, ([49.0, 50, 51], MIDDLE, HIGH), "supported"),
        ({"check": "at-chance", "row": B}, ([49.0, 50, 51], MIDDLE, HIGH), "not supported"),
        (
            {"check": "ratio", "row": C, "to": A, "low": 1.1, "high": 1.3},
            (LOW, MIDDLE, HIGH),
            "supported",
        ),
        ({"check": "ratio", "row": C, "to": A, "low": 1.3}, (LOW, MIDDLE, HIGH), "not supported"),
        ({"check": "ratio", "row": C, "to": A, "low": 1}, ([0.0, 1, 2], MIDDLE, HIGH), "undecided"),
        (
            {"check": "greater", "row": A, "than": B},
            ([60.0] * 3, [60.0] * 3, [60.0] * 3),
            "not supported",
        ),
    ],
)
def test_a_claim_is_decided_as_its_numbers_are(claim, samples, word):
    assert decide(claim, *samples).outcome.value == word


def test_a_verdict_has_the_effect_with_its_interval_and_the_papers():
    effect = decide({"check": "greater", "row": C, "than": A}, LOW, MIDDLE, HIGH).effect
    assert effect
    assert (effect.value, effect.paper, effect.form) == (11, 3, Form.DIFFERENCE)
    assert effect.rows == ((1, "c"), (-1, "a"))
    assert effect.low < 11 < effect.high
    effect = decide({"check": "ratio", "row": C, "to": A, "low": 1.1}, LOW, MIDDLE, HIGH).effect
    assert effect
    assert effect.value == pytest.approx(71 / 60, abs=1e-3)
    assert effect.paper == pytest.approx(83 / 80)


def test_better_by_a_loss_is_less_of_it_and_its_accuracy_stands_beside():
    claim = {"check": "better", "row": C, "than": A, "by": {"loss": "sop_loss"}}
    losses = {"a": [3.0, 3.1, 3.2], "b": [2.0, 2.1, 2.2], "c": [1.0, 1.1, 1.2]}
    accuracies = {"a": LOW, "b": MIDDLE, "c": HIGH}
    (verdict,) = judge(claim, {"sop_loss": losses, "sop_accuracy": accuracies})
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.effect
    assert verdict.effect.rows == ((1, "a"), (-1, "c"))
    assert verdict.beside
    assert verdict.beside.rows == verdict.effect.rows
    assert verdict.beside.value == pytest.approx(-11)


def test_by_tasks_the_first_that_counts_decides_and_none_that_was_not_run():
    claim = {
        "check": "better",
        "row": B,
        "than": A,
        "by": {"loss": "mlm_loss", "tasks": ["mnli", "qnli"]},
    }
    random = {f"{row}, random weights": [49.0, 50, 51] for row in "ab"}
    values = {"mnli": {"a": LOW, "b": LOW}, "qnli": {"a": LOW, "b": HIGH, **random}}
    by_loss, by_tasks = judge(claim, values, tasks={"mnli": "mnli", "qnli": "qnli"})
    assert (by_loss.reason, by_loss.details) == (Reason.NOT_MEASURED, ("mlm_loss",))
    assert (by_tasks.metric, by_tasks.outcome) == ("qnli", Outcome.SUPPORTED)


@pytest.mark.parametrize(
    ("samples", "outcome", "reason"),
    [
        ((LOW, MIDDLE), Outcome.NOT_RUN, Reason.NOT_MEASURED),
        (([49.0, 50, 51], MIDDLE, [50.5, 49, 50.6]), Outcome.CANNOT_TELL, Reason.NOT_LEARNT),
    ],
)
def test_what_was_not_measured_is_not_run_and_what_is_not_learnt_cannot_tell(
    samples, outcome, reason
):
    verdict = decide({"check": "greater", "row": C, "than": A}, *samples)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_chance_is_told_only_if_some_row_learns_the_score_and_the_row_learnt_its_own_task():
    chance = [49.0, 50, 51]
    unlearnt = decide({"check": "at-chance", "row": A}, chance, chance, chance)
    assert unlearnt.outcome is Outcome.CANNOT_TELL
    claim = {"check": "at-chance", "row": A, "trained_for": "nsp_accuracy"}
    for of_nsp, word in ((chance, "cannot tell"), (HIGH, "supported")):
        values = {
            "sop_accuracy": {"a": chance, "b": HIGH},
            "nsp_accuracy": {"a": of_nsp, "b": chance},
        }
        assert judge(claim, values)[0].outcome.value == word


def test_a_task_that_does_not_count_cannot_tell():
    verdict = decide(
        {"check": "greater", "row": C, "than": A},
        LOW,
        MIDDLE,
        HIGH,
        metric="mnli",
        tasks={"mnli": "mnli"},
    )
    assert (verdict.outcome, verdict.reason) == (Outcome.CANNOT_TELL, Reason.NOT_COUNTED)


def test_a_single_seed_decides_nothing_but_numbers_without_a_spread():
    claim = {"check": "greater", "row": C, "than": A}
    verdict = decide(claim, [60.0], [65.0], [70.0])
    assert (verdict.outcome, verdict.reason) == (Outcome.UNDECIDED, Reason.TOO_FEW_RUNS)
    assert decide(claim, [60.0], [65.0], [70.0], metric="parameters").outcome is Outcome.SUPPORTED


def test_rows_of_the_same_runs_cannot_tell():
    frame = toy_frame({"sop_accuracy": {"a": LOW, "b": HIGH}}, rows=ROWS, floor=50.0)
    frame.numbers["run"] = [f"run-{seed}" for seed in frame.numbers["seed"]]
    assert (
        verdicts(asked({"check": "greater", "row": B, "than": A}), frame)[0].reason
        is Reason.SAME_RUNS
    )


def test_holm_corrects_over_the_claims_of_a_study():
    frame = toy_frame(
        {"sop_accuracy": {"a": LOW, "b": [60.1, 61, 62.6], "c": HIGH}}, rows=ROWS, floor=50.0
    )
    claim = {"check": "greater", "row": B, "than": A}
    alone = verdicts(asked(claim), frame)[0].p
    several = [verdict.p for verdict in verdicts(asked(*[claim] * 4), frame)]
    assert several == pytest.approx([min(1, 4 * alone)] * 4)


@settings(max_examples=50)
@given(st.floats(-5, 5), st.floats(0.01, 5), st.floats(0.01, 5))
def test_a_scale_could_tell_an_effect_if_half_its_interval_is_at_most_half_of_it(
    center, half, size
):
    for low, high, paper in ((0.0, math.inf, size), (-size, size, math.nan)):
        interval = (center, center - half, center + half)
        effect = Effect("mnli", "%", Form.DIFFERENCE, (), low, high, *interval, paper)
        assert effect.is_too_wide is (half > size / 2) or math.isclose(half, size / 2)
        assert not replace(effect, high_bound=math.inf, paper=math.nan).is_too_wide


@pytest.mark.parametrize(
    ("baselines", "outcome", "reason"),
    [
        ({}, Outcome.CANNOT_TELL, Reason.BASELINE_NOT_MEASURED),
        (
            {"nsp_by_random_weights": 50.0, "nsp_by_overlap": 68.0},
            Outcome.CANNOT_TELL,
            Reason.BASELINE_AS_HIGH,
        ),
        ({"nsp_by_random_weights": 50.0, "nsp_by_overlap": 56.0}, Outcome.SUPPORTED, None),
    ],
)
def test_a_probe_shows_only_what_neither_random_weights_nor_words_tell(baselines, outcome, reason):
    values = {name: {"a": [value] * 3} for name, value in baselines.items()}
    values["nsp_probe"] = {"a": MIDDLE}
    claim = {"metric": "nsp_probe", "check": "greater", "row": A, "than": 55}
    (verdict,) = judge(claim, values)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("segments", "outcome"), [(60.0, Outcome.SUPPORTED), (68.0, Outcome.CANNOT_TELL)]
)
def test_a_pair_score_shows_order_only_above_what_single_segments_give(segments, outcome):
    verdict = decide(
        {"check": "greater", "row": B, "than": 55}, LOW, MIDDLE, HIGH, segments=segments
    )
    assert verdict.outcome is outcome
    assert (verdict.reason is Reason.SEGMENTS_AS_HIGH) == (outcome is Outcome.CANNOT_TELL)
