import re

import pytest
from toy_ladder import NOT_SHARED, SHARED, growing, toy_ladder

from albert_lab.analysis.ladder import analyse
from albert_lab.studies.experiment import named
from albert_lab.studies.ladder_results import LadderResults

PARTLY = SHARED | {"sharing": "shared-ffn"}


def test_an_effect_is_the_later_row_against_the_first_in_likelihood():
    (trend,) = [line for line in analyse(toy_ladder(growing)).trends if line.measure.key == "mlm_accuracy"]
    assert (trend.contrast.first, trend.contrast.second) == (NOT_SHARED, SHARED)
    assert [effect.value for effect in trend.effects] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5], abs=0.002)
    assert trend.trend is not None
    assert trend.trend.slope.value == pytest.approx(0.1, abs=0.001)
    assert trend.direction == "grows"


def test_effects_are_paired_by_seed_so_noise_that_both_rows_share_has_no_part_in_them():
    def loss(rung, row, seed):
        return growing(rung, row, 0) + 0.5 * seed

    trend = analyse(toy_ladder(loss)).trends[0]
    assert trend.effects[0].error == pytest.approx(0.0, abs=1e-12)


def test_rows_that_are_scored_by_different_methods_are_not_compared():
    def measures(by):
        return {trend.measure.key for trend in analyse(toy_ladder(growing, by=by)).trends}

    assert measures(None) == {"mlm_accuracy", "sop_accuracy"}
    assert measures({"not-shared": "linear probe"}) == {"mlm_accuracy"}


def test_rows_that_the_first_one_is_not_comparable_with_are_compared_with_the_next():
    by = {"not-shared": "linear probe"}
    trends = analyse(toy_ladder(growing, rows=(NOT_SHARED, SHARED, PARTLY), by=by)).trends
    seconds = {trend.measure.key: trend.contrast.second for trend in trends}
    assert seconds == {"mlm_accuracy": NOT_SHARED, "sop_accuracy": SHARED}


def test_an_accuracy_that_no_row_has_learnt_at_any_rung_is_left_out():
    assert {trend.measure.key for trend in analyse(toy_ladder(growing, sop=51.0)).trends} == {"mlm_accuracy"}


def test_scores_that_are_no_columns_of_the_experiment_are_left_out():
    results = toy_ladder(growing)
    asked = results.file.experiment.model_copy(update={"columns": ("mlm_accuracy",)})
    file = results.file.model_copy(update={"experiment": asked})
    assert {trend.measure.key for trend in analyse(LadderResults(file, results.runs)).trends} == {"mlm_accuracy"}


def test_a_contrast_names_the_other_axes_in_which_rows_of_the_ladder_differ():
    assert analyse(toy_ladder(growing)).trends[0].contrast.words == "not-shared − all-shared"
    small = [row | {"embedding_size": "H/4"} for row in (SHARED, NOT_SHARED)]
    words = {trend.contrast.words for trend in analyse(toy_ladder(growing, rows=(SHARED, NOT_SHARED, *small))).trends}
    assert "not-shared − all-shared (embedding_size=H/4)" in words


def test_trends_are_against_the_first_row_and_decisions_are_of_all_pairs():
    analysis = analyse(toy_ladder(growing, rows=(SHARED, PARTLY, NOT_SHARED)))
    (measure,) = [measure for measure in analysis.measures if measure.key == "mlm_accuracy"]
    assert [line.contrast.second for line in analysis.of(measure)] == [SHARED, SHARED]
    assert analysis.accuracies[measure].ladder.of == 3


def test_p_values_of_several_contrasts_are_corrected_together():
    alone, with_more = (
        analyse(toy_ladder(growing, rows=rows)) for rows in ((SHARED, NOT_SHARED), (SHARED, NOT_SHARED, PARTLY))
    )
    assert alone.trends[0].p is not None
    assert with_more.trends[0].p == pytest.approx(2 * alone.trends[0].p)


def test_the_papers_own_difference_is_found_by_its_labels():
    trend = analyse(toy_ladder(growing)).trends[0]
    assert trend.paper["Avg"] == pytest.approx(82.3 - 79.8)
    small = {row["sharing"]: row | {"embedding_size": "H/4"} for row in (SHARED, NOT_SHARED)}
    assert not analyse(toy_ladder(growing, rows=list(small.values()))).trends[0].paper


def test_a_rung_where_a_row_has_no_run_is_no_part_of_its_trend():
    results = toy_ladder(growing)
    kept = {name: run for name, run in results.runs.items() if not name.startswith("h96-H-not-shared")}
    analysis = analyse(LadderResults(results.file, kept))
    assert analysis.trends[0].rungs == ("h24", "h36", "h48", "h72")
    assert len(analysis.results.missing) == 3


def test_the_level_of_a_slope_is_that_of_its_seeds():
    def alpha(looks, seeds):
        level = analyse(toy_ladder(growing, looks=looks, seeds=seeds)).trends[0].alpha
        assert level is not None
        return level

    assert alpha((3,), 3) == pytest.approx(0.05)
    assert alpha((3, 5, 8), 4) == alpha((3, 5, 8), 5) < alpha((3, 5, 8), 3) < 0.05
    assert alpha((3, 5, 8), 8) < 0.05


def test_nothing_is_decided_before_the_first_look():
    (line, *_) = analyse(toy_ladder(growing, looks=(3,), seeds=2)).trends
    assert line.alpha is None
    assert line.trend is not None
    assert line.direction is None


def test_a_rung_below_its_first_look_takes_no_verdict_from_those_that_have_reached_it():
    results = toy_ladder(growing)
    kept = {name: run for name, run in results.runs.items() if not re.fullmatch(r"h96-.*-[12]", name)}
    (line, *_) = analyse(LadderResults(results.file, kept)).trends
    assert line.direction == "grows"
    assert line.rungs == ("h24", "h36", "h48", "h72")
    assert [effect.n for effect in line.early.values()] == [1]


def test_where_fewer_than_three_rungs_have_reached_the_first_look_all_are_before_it():
    results = toy_ladder(growing)
    kept = {name: run for name, run in results.runs.items() if not re.fullmatch(r"h(48|72|96)-.*-[12]", name)}
    (line, *_) = analyse(LadderResults(results.file, kept)).trends
    assert len(line.rungs) == 5
    assert line.alpha is None


def test_the_papers_rows_stand_for_themselves_where_no_row_of_the_ladder_stands_for_them():
    rows = [SHARED | {"embedding_size": label} for label in ("H", "H/2")]
    analysis = analyse(toy_ladder(growing, rows=rows, experiment=named("embedding-size")))
    assert {effect.row: effect.differences["Avg"] for effect in analysis.paper} == {
        "E=64": -0.8,
        "E=128": 0.3,
        "E=256": -0.2,
    }
    (paired,) = analyse(toy_ladder(growing)).paper
    assert (paired.words, paired.differences["Avg"]) == ("not-shared − all-shared", 2.5)
    with_another = analyse(toy_ladder(growing, rows=(SHARED, NOT_SHARED, SHARED | {"sharing": "mine"}))).paper
    assert [effect.words for effect in with_another] == ["not-shared − all-shared"]


def test_decisions_of_all_measures_are_counted_together():
    analysis = analyse(toy_ladder(growing, rows=(SHARED, PARTLY, NOT_SHARED)))
    assert analysis.accuracy is not None
    assert analysis.accuracy.ladder.of == sum(part.ladder.of for part in analysis.accuracies.values()) == 6
    assert analyse(toy_ladder(growing, rungs=2)).accuracy is None
