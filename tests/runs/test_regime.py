import pytest
from records import toy_record

from albert_lab.config.compose import load
from albert_lab.runs import regime
from albert_lab.runs.regime import Quantity


def by_name(quantities):
    return {quantity.name: quantity for quantity in quantities}


def test_the_papers_own_setting_is_in_the_papers_regime():
    for overrides in (["embedding_size=128"], ["embedding_size=768", "sharing=not-shared"]):
        result = regime.of_config(load(["scale=paper", *overrides]))
        assert regime.notes(result) == []
        assert by_name(result)["tokens per parameter"].times_off == pytest.approx(1, abs=0.05)


def here(quantity: Quantity) -> tuple[float, float]:
    assert quantity.here is not None
    return quantity.here


def test_a_laptop_run_is_noted_for_too_few_tokens():
    result = regime.of_config(load(["scale=laptop"]))
    (note,) = [note for note in regime.notes(result) if note.startswith("tokens per parameter")]
    assert "below the paper's" in note
    assert "Tables 3 and 4" in note


def test_a_record_gives_the_tokens_read_and_the_documents_as_cut():
    record = toy_record()
    result = by_name(regime.of_record(record))
    parameters = record.parameters["total"]
    assert here(result["tokens per parameter"])[0] == pytest.approx(record.training.tokens / parameters, rel=0.5)
    assert here(result["passes over the text"])[0] == record.data.passes
    assert here(result["median document in sequences"])[0] == record.data.median_document_sequences


@pytest.mark.parametrize(("value", "times"), [(5.0, 2.0), (10.0, 1.0), (15.0, 1.0), (60.0, 3.0)])
def test_the_distance_from_the_paper_is_measured_from_the_nearer_end_of_its_range(value, times):
    assert Quantity("a ratio", (value, value), (10.0, 20.0), "a table", "a reason").times_off == times


def test_unknown_numbers_are_not_far_off():
    assert Quantity("a ratio", None, (10.0, 20.0), "a table", "a reason").times_off == 1
    assert Quantity("a ratio", (5.0, 5.0), None, "a table", "a reason").times_off == 1


def test_several_runs_are_a_range_judged_by_its_farther_end():
    runs = [regime.of_config(load(["scale=laptop", f"budget.value={steps}"]), 1e6) for steps in (10, 1000)]
    together = by_name(regime.together(runs))["passes over the text"]
    assert together.here == tuple(here(by_name(run)[together.name])[0] for run in runs)
    assert together.times_off == by_name(runs[0])[together.name].times_off


def test_an_embedding_size_that_was_not_seen_to_learn_is_warned_of():
    small, enough, toy = (load([*words]) for words in (["embedding_size=6"], ["embedding_size=12"], ["scale=smoke"]))
    (warning,) = regime.too_small([small, enough, toy])
    assert "embedding_size=6:" in warning
    assert not regime.too_small([enough, toy])
