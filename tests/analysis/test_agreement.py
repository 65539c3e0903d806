import re
from typing import Any

import pytest
from planted import analysed
from records import scored, toy_run, with_numbers
from statsmodels.stats.proportion import proportion_confint

from albert_lab.analysis.agreement import PAPERS_SD, Agreement, comparisons, total
from albert_lab.analysis.table_scores import TableScores
from albert_lab.report.agreement import as_text, of_report
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


def of_rows(name: str, rows: list[Row]) -> Agreement:
    return total([comparisons(experiment.named(name), TableScores(rows))])


def agreement_of(scores: dict[str, tuple[float, ...]], seeds: int = 3) -> Agreement:
    return of_rows("sop-vs-nsp", table(scores, seeds))


def counts(scores: dict[str, tuple[float, ...]], seeds: int = 3) -> tuple[int, int, int, int]:
    result = agreement_of(scores, seeds)
    return result.pairs, result.agreeing, result.decided, result.decided_agreeing


def test_a_pair_counts_if_the_paper_has_a_difference_of_a_point():
    assert counts(PAPERS_ORDER) == (5, 5, 5, 5)  # of six: the paper's RACE of two rows differs by 0.6 points
    assert counts({"race": (34.0, 31.0, 30.0)}) == (2, 0, 2, 0)


def test_a_pair_within_the_noise_is_not_decided():
    assert counts({"race": (30.0, 31.0, 31.05)}) == (2, 2, 1, 1)


def test_few_seeds_decide_no_pair_and_equal_means_never_agree():
    assert counts(PAPERS_ORDER, seeds=2) == (5, 5, 0, 0)
    assert agreement_of({"race": (30.0, 30.0, 30.0)}).agreeing == 0


def test_tasks_are_ranked_by_the_likelihood_of_masked_tokens_too():
    result = agreement_of({"race": (34.0, 31.0, 30.0), "mlm_loss": (4.9, 4.8, 4.7)})
    assert (result.agreeing, result.likely, result.likely_agreeing) == (0, 2, 2)
    own = agreement_of({"sop_accuracy": (52.0, 51.0, 60.0), "sop_loss": (0.6, 0.5, 0.7)})
    assert (own.likely, own.likely_agreeing) == (3, 0)


def test_rows_that_differ_in_two_factors_are_no_pair():
    own = experiment.named("sharing")
    assert own.paper is not None
    rows = []
    for cells in own.paper.rows:
        labels = {axis: cells[axis] for axis in own.axes}
        if labels in (
            {"embedding_size": "768", "sharing": "all-shared"},
            {"embedding_size": "128", "sharing": "not-shared"},
        ):
            rows.append(Row(labels, {}, [toy_run(str(labels), 0, {"race": float(cells["race"])})], {}))
    assert len(rows) == 2
    assert of_rows("sharing", rows) == Agreement()


def test_the_same_runs_in_two_tables_count_once():
    rows = table({"race": (30.0, 31.0, 34.0)})
    once = comparisons(experiment.named("sop-vs-nsp"), TableScores(rows))
    assert total([once, once]) == total([once])
    others = [
        Row(row.labels, {}, [toy_run(f"again-{run.name}", run.seed, run.numbers) for run in row.runs], {})
        for row in rows
    ]
    again = comparisons(experiment.named("sop-vs-nsp"), TableScores(others))
    assert total([once, again]).pairs == 2 * total([once]).pairs


def test_the_noise_of_the_paper_is_that_of_the_scores_that_it_prints_twice():
    def cells(name):
        paper = experiment.named(name).paper
        assert paper is not None
        rows = [row for row in paper.rows if row["embedding_size"] == "128"]
        return {row["sharing"]: float(row["mnli"]) for row in rows}

    first, second = cells("embedding-size"), cells("sharing")
    squares = [(first[sharing] - second[sharing]) ** 2 for sharing in first.keys() & second.keys()]
    assert len(squares) == 2
    assert pytest.approx((sum(squares) / len(squares) / 2) ** 0.5) == PAPERS_SD


def test_the_average_repeats_its_tasks_and_is_left_out():
    assert agreement_of({"average": (30.0, 31.0, 34.0)}) == Agreement()


def test_a_row_at_the_floor_is_in_no_pair():
    rows = table(PAPERS_ORDER)
    for row in rows:
        row.runs[:] = [
            with_numbers(run, {"sop_accuracy": scored(run.numbers["sop_accuracy"], 52.0, 10**9)}) for run in row.runs
        ]
    assert of_rows("sop-vs-nsp", rows).pairs == 2


def test_a_linear_probe_is_not_compared_with_a_trained_head():
    rows = table(PAPERS_ORDER)
    for place, by in enumerate(("linear probe", "head", "head")):
        rows[place].runs[:] = [
            with_numbers(run, {"sop_accuracy": scored(run.numbers["sop_accuracy"], 0, 10**9, by=by)})
            for run in rows[place].runs
        ]
    assert of_rows("sop-vs-nsp", rows).pairs == 3


def test_the_line_has_shares_with_wilson_intervals_beside_the_baseline_and_the_ceiling():
    text = as_text(Agreement(6, 4, 2, 2, 6, 5, 4, 3, 5.5) + Agreement(4, 4, 0, 0, 4, 4, 0, 0, 3.5))
    low, high = proportion_confint(8, 10, method="wilson")
    assert f"by score 8 of 10 (80 % [{100 * low:.0f}, {100 * high:.0f}])" in text
    assert "of the clear ones 2 of 2 (100 % [34, 100])" in text
    assert re.search(r"by loss 9 of 10 \([^)]*\)", text)
    assert "“more parameters win” is right in 3 of 4" in text
    assert "a re-run of the paper would agree on 90 %" in text
    assert as_text(Agreement()) == ""


def test_a_report_without_a_pair_says_why():
    def text(rows: list[Row], name: str = "sop-vs-nsp") -> str:
        return of_report(analysed(experiment.named(name), rows))

    rows = table({"sop_accuracy": (50.0, 50.0, 50.0)})
    for row in rows:
        row.runs[:] = [with_numbers(run, {"sop_accuracy": scored(50.0, 50.0)}) for run in row.runs]
    assert text(rows).endswith("of 3 pairs of rows by a score none is left: 3 with a row at the floor.")
    assert text(table({"average": (50.0, 60.0, 70.0)})).endswith("that the paper prints of both.")
    assert "Rows in the paper's order" in text(table(PAPERS_ORDER))
    assert text(rows, "layer-similarity-sharing") == ""


@pytest.mark.parametrize("name", ["sop-vs-nsp", "sharing"])
def test_the_papers_own_scores_agree_with_it(name):
    own = experiment.named(name)
    assert own.paper is not None
    rows = []
    for cells in own.paper.rows:
        labels = {axis: cells[axis] for axis in own.axes}
        rows.append(Row(labels, {}, [toy_run(str(labels), 0, {"race": float(cells["race"])})], {}))
    same = of_rows(name, rows)
    assert same.pairs == same.agreeing > 0
