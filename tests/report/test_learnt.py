import pytest
from planted import analysed
from records import toy_record

from albert_lab.report import verdicts
from albert_lab.report.learnt import sentences
from albert_lab.runs.reported import ReportedRun
from albert_lab.studies import experiment
from albert_lab.studies.table import Row


def table(*sop: float) -> list[Row]:
    """The SOP row, whose seeds have these SOP accuracies over 1,000 pairs each."""
    runs = [ReportedRun(record=toy_record(name=f"sop-{seed}", sop=value, seed=seed)) for seed, value in enumerate(sop)]
    return [Row({"inter_sentence": "sop"}, {"inter_sentence": "sop"}, runs, {})]


def sentence(*sop: float) -> str:
    """What is said of the SOP accuracy of the row."""
    (result,) = sentences(analysed(experiment.named("sop-vs-nsp"), table(*sop)))
    return result.split("; ")[1]


@pytest.mark.parametrize("sop", [(52.0, 52.2, 51.8), (96.0, 96.2, 95.9), (60.0, 66.0, 96.0)])
def test_a_row_has_one_interval_in_the_list_and_in_a_verdict(sop):
    result = analysed(experiment.named("sop-vs-nsp"), table(*sop))
    (verdict,) = (each for each in result.verdicts if each.claim.metric == "sop_accuracy" and each.interval)
    assert f" [{verdicts.effect(verdict).split('[')[1].split(']')[0]}]," in sentence(*sop)


def test_seeds_that_agree_do_not_narrow_the_interval_of_their_answers():
    assert sentence(52.0, 52.0, 52.0) == "SOP 52.0 % [48.9, 55.1], straddles 55 %, the limit of chance."


def test_a_row_above_chance_is_compared_with_bags_of_tokens():
    assert sentence(59.0, 59.5, 59.2).endswith("above chance, not above bags of tokens (58.0 %).")
    assert sentence(70.0, 70.5, 70.2).endswith("above chance, above bags of tokens (58.0 %).")


def test_a_row_above_bags_of_tokens_is_above_them_by_the_errors_of_both():
    assert sentence(61.8, 62.0, 62.2) == "SOP 62.0 % [59.0, 65.0], above chance, not above bags of tokens (58.0 %)."
    assert sentence(62.5, 62.7, 62.9) == "SOP 62.7 % [59.7, 65.7], above chance, above bags of tokens (58.0 %)."


def test_a_row_is_at_chance_by_the_limits_of_the_check():
    assert sentence(50.0, 50.2, 50.1).endswith("at chance (45 to 55 %).")
    assert sentence(40.0, 40.2, 40.1).endswith("below chance.")


def test_an_interval_stays_within_the_range_of_scores():
    assert "[0.0, 100.0]" in sentence(30.0, 70.0)
