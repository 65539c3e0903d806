import math
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import analysed, decide
from records import BAGS_ALARM, SOP_ALARM, scored, toy_layer, toy_run
from toy_reports import toy_report

from albert_lab.analysis.decisions import Decision
from albert_lab.report import report
from albert_lab.report.verdicts import headlines
from albert_lab.runs.reported import ReportedRun
from albert_lab.score import Alarm
from albert_lab.studies import experiment
from albert_lab.studies.table import Row
from albert_lab.training.layer_numbers import Layer, layer_numbers


def toy_layers(*distances: float, factor: float = 1.0) -> list[Layer]:
    """Layers of a run, last layer first, with other numbers for [CLS]."""
    lines = [
        toy_layer(layer, token, l2_distance=shift + factor * value, degrees=shift + value)
        for layer, value in enumerate(distances, 1)
        for token, shift in (("cls", 100.0), ("mean", 0.0))
    ]
    return lines[::-1]


def test_roughness_is_the_mean_change_between_layers_over_their_mean():
    # Changes of 2, 4 and 1 over a mean of 4.25; a hidden size of 4 has the root 2.
    result = layer_numbers(toy_layers(4, 2, 6, 5), 4)
    assert result["degrees_roughness"] == pytest.approx((2 + 4 + 1) / 3 / 4.25)
    assert (result["last_degrees"], result["last_rms_change"]) == (5, 2.5)


def test_a_rotation_by_one_degree_is_the_same_change_at_every_width():
    turns = [2 * math.sqrt(size) * math.sin(math.radians(0.5)) for size in (64, 1024)]
    changes = [
        layer_numbers(toy_layers(turn), size)["last_rms_change"] for turn, size in zip(turns, (64, 1024), strict=True)
    ]
    assert changes == pytest.approx([0.01745, 0.01745], abs=1e-5)


@given(
    values=st.lists(st.floats(0.1, 90), min_size=2, max_size=30), factor=st.floats(0.01, 100), height=st.floats(0.1, 9)
)
def test_roughness_has_no_unit_and_is_zero_for_equal_layers(values, factor, height):
    result = layer_numbers(toy_layers(*values, factor=factor), 1)
    assert result["l2_roughness"] == pytest.approx(result["degrees_roughness"], rel=1e-9)
    assert result["degrees_roughness"] == pytest.approx(np.abs(np.diff(values)).mean() / np.mean(values))
    level = layer_numbers(toy_layers(*[height] * len(values)), 1)
    assert level["l2_roughness"] == 0


def test_a_single_layer_has_no_roughness():
    result = layer_numbers(toy_layers(3.0), 1)
    assert "l2_roughness" not in result
    assert result["last_degrees"] == 3


def test_claims_on_layers_are_decided_from_the_records_of_a_report(tmp_path):
    asked = experiment.named("layer-similarity")
    folder = toy_report(tmp_path / "layer-similarity", asked, seeds=3)
    text = report.rebuild(folder).read_text()
    # Angles of the 4th layer are 30 / 4 + seed, and 5 degrees more in the second row.
    assert "`last_degrees` ALBERT-large above 1: +8.5 [+6.02, +11] degrees, 3 seeds," in text
    assert "BERT-large above ALBERT-large: +5 [+5, +5] degrees, 3 seeds paired" in text
    assert [verdict.decision for verdict in report.read(folder).verdicts][4:] == [Decision.SUPPORTED] * 2
    assert " 8.5 ± 1.0 |" in text.split("## Layers")[1]


def test_a_table_of_layers_stands_before_the_scores_and_has_the_distance_of_the_figure(tmp_path):
    folder = toy_report(tmp_path / "layer-similarity", experiment.named("layer-similarity"), seeds=3)
    text = report.rebuild(folder).read_text()
    assert text.index("![layer-similarity]") < text.index("## Layers") < text.index("## Scores on held-out documents")
    rows = report.read(folder).rows
    last = [fmean(last_of(run).l2_distance for run in row.runs) for row in rows]
    assert all(f" {value:.1f}" in text.split("## Layers")[1] for value in last)


@pytest.mark.parametrize(("mlm", "decisions"), [(20.0, [Decision.SUPPORTED]), (5.0, [Decision.NOT_LEARNT])])
def test_a_model_that_has_not_learnt_mlm_is_no_evidence_of_what_layers_do(mlm, decisions):
    rows = [
        Row({"model": label}, {}, [layers_of_run(label, seed, degrees, mlm) for seed in range(3)], {})
        for label, degrees in (("ALBERT-large", 10.0), ("BERT-large", 20.0))
    ]
    verdicts = [
        verdict
        for verdict in decide(experiment.named("layer-similarity"), rows)
        if verdict.claim.metric == "last_degrees"
    ]
    assert [verdict.decision for verdict in verdicts] == 2 * decisions
    reasons = {verdict.reason.partition(":")[0] for verdict in verdicts}
    assert reasons == {"at the floor of mlm_accuracy" if mlm == 5.0 else ""}


@pytest.mark.parametrize(
    ("sop", "alarms", "decision"),
    [
        (50.0, (SOP_ALARM,), Decision.NOT_LEARNT),
        (50.0, (), Decision.SUPPORTED),  # not trained on SOP
        (60.0, (SOP_ALARM,), Decision.SUPPORTED),  # one of its runs may have failed, not the row
    ],
)
@pytest.mark.parametrize("metric", ["last_degrees", "average"])
def test_a_row_that_failed_at_a_loss_of_its_training_is_no_evidence_of_the_whole_model(metric, sop, alarms, decision):
    def run(label: str, seed: int) -> ReportedRun:
        is_better = label == "BERT-large"
        numbers = {metric: 20.0 + 10 * is_better + seed / 10, "mlm_accuracy": scored(20.0 + seed / 10, 5.0)}
        numbers["sop_accuracy"] = scored((70.0 if is_better else sop) + seed / 10, 50.0)
        return toy_run(f"{label}-{seed}", seed, numbers, alarms=() if is_better else alarms)

    labels = ("ALBERT-large", "BERT-large")
    rows = [Row({"model": label}, {}, [run(label, seed) for seed in range(3)], {}) for label in labels]
    asked = experiment.named("layer-similarity")
    claim = next(claim for claim in asked.claims if claim.metric == "last_degrees")
    one = asked.model_copy(update={"claims": (claim.model_copy(update={"metric": metric}),)})
    (verdict,) = decide(one, rows)
    assert verdict.decision is decision
    assert verdict.reason == ("at the floor of sop_accuracy: ALBERT-large" if decision == "not learnt" else "")


def test_a_claim_on_layers_is_not_qualified_by_scores_on_pairs():
    rows = [
        Row({"model": label}, {}, [layers_of_run(label, seed, degrees, 20.0, alarms) for seed in range(3)], {})
        for label, degrees, alarms in (("ALBERT-large", 10.0, ()), ("BERT-large", 20.0, (BAGS_ALARM,)))
    ]
    claim_lines = [
        line for line in headlines(analysed(experiment.named("layer-similarity"), rows)) if "Supported" in line
    ]
    assert len(claim_lines) == 2
    assert not any("bags of tokens" in line for line in claim_lines)


def last_of(run: ReportedRun) -> Layer:
    return max((layer for layer in run.layers if layer.token == "mean"), key=lambda layer: layer.layer)


def layers_of_run(label: str, seed: int, degrees: float, mlm: float, alarms: tuple[Alarm, ...] = ()) -> ReportedRun:
    numbers = {"last_degrees": degrees + seed / 10, "mlm_accuracy": scored(mlm + seed / 10, 5.0)}
    return toy_run(f"{label}-{seed}", seed, numbers, alarms=alarms)


def test_only_an_experiment_with_measured_layers_can_have_claims_about_them():
    content = experiment.named("layer-similarity").model_dump() | {"figures": ["learning-curves"]}
    with pytest.raises(ValueError, match="l2_roughness is no column of the table of runs"):
        experiment.Experiment.model_validate(content)
