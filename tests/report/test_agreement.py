from typing import Any

import pytest
from planted import analysed
from records import scored, toy_column, toy_finetuning, toy_run, with_numbers
from statsmodels.stats.proportion import proportion_confint

from albert_lab.analysis.agreement import Agreement, total
from albert_lab.report.agreement import as_text
from albert_lab.studies import experiment
from albert_lab.studies.table import Row

LOSSES = ("none", "nsp", "sop")
# Table 5: SOP 53.3, 52.0, 86.5; RACE 61.7, 62.3, 64.0.
PAPERS_ORDER: dict[str, Any] = {"sop_accuracy": (52.0, 51.0, 60.0), "race": (30.0, 31.0, 34.0)}


def table(scores: dict[str, tuple[float, ...]], seeds: int = 3) -> list[Row]:
    rows = []
    for place, loss in enumerate(LOSSES):
        runs = []
        for seed in range(seeds):
            noise = 0.2 * ((seed + place) % 3)
            numbers = {column: values[place] + noise for column, values in scores.items()}
            runs.append(toy_run(f"{loss}-{seed}", seed, numbers))
        rows.append(Row({"inter_sentence": loss}, {}, runs, {}))
    return rows


def found(scores: dict[str, tuple[float, ...]], seeds: int = 3) -> Agreement:
    return analysed(experiment.named("sop-vs-nsp"), table(scores, seeds)).agreement


def test_every_pair_of_rows_in_every_printed_score_counts_once():
    assert found(PAPERS_ORDER) == Agreement(6, 6, 6, 6)
    assert found({"race": (34.0, 31.0, 30.0)}) == Agreement(3, 0, 3, 0)
    instead = table({"next-paragraph": (30.0, 31.0, 34.0)})
    for row in instead:
        for place, run in enumerate(row.runs):
            tuned = toy_column("race", toy_finetuning(run.name, "next-paragraph", 30.0, floor=0))
            row.runs[place] = toy_run(run.name, run.seed, run.numbers, (tuned,))
    assert analysed(experiment.named("sop-vs-nsp"), instead).agreement == Agreement(3, 3, 3, 3)


def test_a_pair_within_the_noise_is_not_decided():
    assert found({"race": (30.0, 30.05, 34.0)}) == Agreement(3, 3, 2, 2)


def test_few_seeds_decide_no_pair_and_equal_means_never_agree():
    assert found(PAPERS_ORDER, seeds=2) == Agreement(6, 6, 0, 0)
    assert found({"race": (30.0, 30.0, 30.0)}).agreeing == 0


def test_the_average_repeats_its_tasks_and_is_left_out():
    assert found({"average": (30.0, 31.0, 34.0)}) == Agreement()


def test_a_row_at_the_floor_decides_no_pair():
    rows = table(PAPERS_ORDER)
    for row in rows:
        row.runs[:] = [
            with_numbers(run, {"sop_accuracy": scored(run.numbers["sop_accuracy"], 52.0, 10**9)}) for run in row.runs
        ]
    assert analysed(experiment.named("sop-vs-nsp"), rows).agreement == Agreement(6, 6, 3, 3)


def test_a_linear_probe_is_not_compared_with_a_trained_head():
    rows = table(PAPERS_ORDER)
    for place, by in enumerate(("linear probe", "head", "head")):
        rows[place].runs[:] = [
            with_numbers(run, {"sop_accuracy": scored(run.numbers["sop_accuracy"], 0, 10**9, by=by)})
            for run in rows[place].runs
        ]
    assert analysed(experiment.named("sop-vs-nsp"), rows).agreement == Agreement(4, 4, 4, 4)


def test_the_line_has_both_shares_with_wilson_intervals():
    text = as_text(total([Agreement(6, 4, 2, 2), Agreement(4, 4, 0, 0)]))
    low, high = proportion_confint(8, 10, method="wilson")
    assert f"of 10 comparisons of two rows by one score, 8 (80 % [{100 * low:.0f}, {100 * high:.0f}])" in text
    assert "of the 2 whose difference is decided here, 2 (100 % [34, 100])" in text
    assert as_text(Agreement()) == ""
    assert "none of the differences" in as_text(Agreement(3, 1, 0, 0))


def test_an_experiment_without_a_table_of_the_paper_has_no_pairs():
    assert analysed(experiment.named("layer-similarity"), []).agreement == Agreement()


@pytest.mark.parametrize("name", ["sop-vs-nsp", "sharing"])
def test_the_papers_own_scores_agree_with_it(name):
    own = experiment.named(name)
    assert own.paper is not None
    rows = []
    for cells in own.paper.rows:
        labels = {axis: cells[axis] for axis in own.axes}
        rows.append(Row(labels, {}, [toy_run(str(labels), 0, {"race": float(cells["race"])})], {}))
    same = analysed(own, rows).agreement
    assert same.pairs == same.agreeing > 0
