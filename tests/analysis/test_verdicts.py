from collections import Counter

import numpy as np
import pytest
from planted import EMBEDDING_SIZES, claim, companions, decide, experiment, noisy, row, table
from records import scored, toy_run, with_numbers

from albert_lab.analysis.papers_numbers import printed
from albert_lab.analysis.statistics import power
from albert_lab.analysis.verdicts import Decision, Verdict
from albert_lab.runs.reported import AVERAGED
from albert_lab.studies import experiment as experiments
from albert_lab.studies.table import Row, RowNames

GREATER = claim("greater", row=row("128"), than=row("64"))
WITHIN = claim("within", row=row("128"), of=row("64"), margin=0.5)
PEAK = claim("peak-at", axis="embedding_size", at="128")
RISING = claim("monotone", axis="embedding_size", direction="rising")
CHANCE = claim("at-chance", row=row("64")) | {"metric": "sop_accuracy"}
SPREAD = (-0.1, 0.0, 0.1)
NAMES = RowNames(experiment(), [])


def around(*means: float) -> dict[str, list[float]]:
    """Rows whose three seeds lie closely around these means, each row's seeds in another order."""
    return {
        label: [mean + 0.5 * seed + SPREAD[(place + seed) % 3] for seed in range(3)]
        for place, (label, mean) in enumerate(zip(EMBEDDING_SIZES, means, strict=False))
    }


def verdict(content: dict, values, **more) -> Verdict:
    return decide(experiment(content), table(values, content["metric"], **more))[0]


@pytest.mark.parametrize(
    ("content", "means", "decision"),
    [
        (GREATER, (80, 82), "supported"),
        (GREATER, (82, 80), "not supported"),
        (GREATER, (80, 80.05), "undecided"),
        (claim("greater", row=row("64"), than=55), (60,), "supported"),
        (claim("greater", row=row("64"), than=55), (50,), "not supported"),
        (WITHIN | {"margin": 1.5}, (80, 80.1), "supported"),
        (WITHIN, (80, 83), "not supported"),
        (WITHIN, (80, 80.4), "undecided"),
        (claim("ordered", order=[row("768"), row("64"), row("128")]), (80, 78, 0, 82), "supported"),
        (claim("ordered", order=[row("768"), row("64"), row("128")]), (80, 82, 0, 84), "not supported"),
        (claim("ordered", order=[row("768"), row("64"), row("128")]), (80, 78, 0, 80), "undecided"),
        (CHANCE, (50, 80), "supported"),
        (CHANCE, (70, 80), "not supported"),
        (CHANCE, (40, 80), "not supported"),
        (CHANCE, (54.5, 80), "undecided"),
        (RISING, (78, 80, 81, 83), "supported"),
        (RISING, (83, 81, 80, 78), "not supported"),
        (RISING, (70, 80, 75, 85), "not supported"),  # rises on the whole, and falls in the middle
        (RISING, (80, 80, 80, 80.05), "undecided"),
        (RISING | {"direction": "falling"}, (83, 81, 80, 78), "supported"),
        (PEAK, (80, 84, 81, 82), "supported"),
        (PEAK, (80, 82, 84, 81), "not supported"),
        (PEAK, (80, 84, 84, 81), "undecided"),
    ],
)
def test_each_check_on_planted_means(content, means, decision):
    assert verdict(content, around(*means)).decision == decision


@pytest.mark.parametrize(
    ("bounds", "decision"),
    [
        ({"low": 1.5, "high": 2}, "supported"),
        ({"low": 1}, "supported"),
        ({"high": 1.5}, "not supported"),
        ({"low": 1.7, "high": 3}, "undecided"),
    ],
)
def test_a_ratio_is_decided_and_shown_as_a_factor(bounds, decision):
    content = claim("ratio", row=row("128"), to=row("64"), **bounds) | {"metric": "tokens_per_second"}
    result = verdict(content, {"64": [1000, 1010, 990], "128": [1700, 1720, 1690]})
    assert result.decision == decision
    assert result.effect == pytest.approx(1.703, abs=0.001)
    assert result.interval is not None
    assert result.interval[0] < 1.703 < result.interval[1]


@pytest.mark.parametrize(("best", "decision"), [(51, "not learnt"), (55.2, "not learnt"), (57, "supported")])
def test_being_at_chance_is_no_evidence_if_no_row_is_above_chance(best, decision):
    result = verdict(CHANCE, around(50, 49, best))
    assert result.decision == decision
    nothing = f"no row is clearly above chance (55 %): the best, E = 256, is at {best + 0.5:.1f} %"
    assert result.reason == ("" if decision == "supported" else nothing)
    assert not result.lack


@pytest.mark.parametrize(("own", "decision"), [(50, "not learnt"), (70, "supported")])
def test_being_at_chance_is_no_evidence_for_a_row_that_has_not_learnt_its_task(own, decision):
    rows = table(around(50, 80), "sop_accuracy")
    for item in rows:
        item.runs[:] = [with_numbers(run, {"nsp_accuracy": scored(own + run.seed)}) for run in item.runs]
    result = decide(experiment(CHANCE | {"trained_for": "nsp_accuracy"}), rows)[0]
    assert result.decision == decision
    assert ("nsp_accuracy" in result.reason) == (decision == "not learnt")


@pytest.mark.parametrize("n", [1, 2])
def test_nothing_is_decided_with_fewer_than_three_seeds(n):
    result = verdict(GREATER, {"64": [50.0, 50.1][:n], "128": [90.0, 90.1][:n]})
    assert result.decision is Decision.UNDECIDED
    assert f"{n} of at least 3 seeds" in result.reason


def test_a_row_without_runs_or_without_the_score_is_not_run():
    assert verdict(GREATER, {"64": [80, 81, 82]}).decision is Decision.NOT_RUN
    result = decide(experiment(GREATER), table(around(80, 82), "mnli"))[0]
    assert result.decision is Decision.NOT_RUN
    assert "average" in result.reason
    assert "E = 128" in result.reason


def test_rows_with_the_same_runs_at_a_small_scale_are_undecided():
    rows = table({"64": [80, 81, 82]})
    same = [rows[0], Row(row("128"), row("64"), rows[0].runs, {})]
    result = decide(experiment(GREATER), same)[0]
    assert result.decision is Decision.UNDECIDED
    assert "the same runs" in result.reason


def test_an_axis_that_the_claim_leaves_open_makes_it_undecided():
    rows = table(around(80, 82))
    for item in [*rows]:
        item.labels["batch_size"] = "8"
        rows.append(Row(item.labels | {"batch_size": "16"}, item.values, item.runs, {}))
    result = decide(experiment(GREATER), rows)[0]
    assert result.decision is Decision.UNDECIDED
    assert "batch_size" in result.reason


def test_shared_seeds_are_paired_and_others_are_not():
    paired = verdict(GREATER, around(80, 82))
    apart = verdict(GREATER, {"64": {0: 80, 1: 81, 2: 82}, "128": {7: 85, 8: 86, 9: 87}})
    assert (paired.is_paired, apart.is_paired) == (True, False)


def test_the_weakest_comparison_is_shown_or_the_one_that_contradicts():
    held = verdict(PEAK, around(80, 84, 81, 82))
    assert held.comparison is not None
    assert held.comparison.words(NAMES) == "E = 128 − E = 768"
    assert held.effect == pytest.approx(2.0, abs=0.1)
    failed = verdict(PEAK, around(80, 82, 84, 81))
    assert failed.comparison is not None
    assert failed.comparison.words(NAMES) == "E = 128 − E = 256"
    assert failed.effect == pytest.approx(-2.0, abs=0.1)


def test_the_correction_counts_every_claim_of_the_table():
    values = {"64": [80.0, 80.0, 80.0], "128": [80.9, 81.1, 81.0]}
    alone = decide(experiment(GREATER), table(values))
    among = decide(experiment(GREATER, *[WITHIN] * 9), table(values))
    assert alone[0].p is not None
    assert among[0].p == pytest.approx(10 * alone[0].p)


def test_claims_without_evidence_do_not_count_in_the_family():
    rows, asked = learnt(around(49, 60, 70)), claim("greater", row=row("256"), than=row("128"))
    at_the_floor, not_run = GREATER, claim("greater", row=row("768"), than=row("128"))
    alone, among = decide(experiment(asked), rows), decide(experiment(asked, at_the_floor, not_run), rows)
    assert among[0].p == alone[0].p is not None


def test_identical_accuracies_over_few_answers_are_undecided():
    values = {"64": [50.0] * 3, "128": [52.5] * 3}
    assert verdict(GREATER, values, score=lambda value: scored(value, 0, 40)).decision is Decision.UNDECIDED
    assert verdict(GREATER, values, score=lambda value: scored(value, 0, 4000)).decision is Decision.SUPPORTED


def test_an_undecided_claim_has_the_number_of_seeds_for_an_effect_of_the_papers_size():
    values = {"64": [80.0, 80.0, 80.0], "128": [79.0, 81.0, 80.0]}
    result = decide(experiment(GREATER, paper={"64": "79.0", "128": "80.0"}), table(values))[0]
    # Differences -1, 1, 0: sd 1, so the paper's one point is an effect of d = 1.
    assert (result.decision, result.papers_effect, result.seeds) == ("undecided", 1, 10)
    two_claims = experiment(GREATER, WITHIN, paper={"64": "79.0", "128": "80.0"})
    first, second = decide(two_claims, table(values))
    assert first.seeds == 13  # at half the level
    assert (second.seeds, second.lack) == (None, "the paper's own numbers do not bear it out")
    assert decide(experiment(GREATER), table(values))[0].lack == "the paper prints no number for it"


@pytest.mark.parametrize("name", ["sop-vs-nsp", "embedding-size", "sharing"])
def test_runs_with_the_papers_scores_support_all_its_claims(name):
    table_experiment = experiments.named(name)
    assert table_experiment.paper is not None
    rng = np.random.default_rng(0)
    rows = []
    for cells in table_experiment.paper.rows:
        labels = {axis: cells[axis] for axis in table_experiment.axes}
        means = {column: printed(cells[column]) for column in set(table_experiment.paper.columns) - {"parameters"}}
        runs = [
            toy_run(
                f"{labels}-{seed}",
                seed,
                {key: float(mean) + rng.normal(0, 0.05) for key, mean in means.items() if mean},
            )
            for seed in range(5)
        ]
        rows.append(Row(labels, labels, runs, {}))
    for item in decide(table_experiment, rows):
        is_printed = not item.claim.metric.endswith("tokens_per_second")
        assert item.decision == ("supported" if is_printed else "not run"), item


# Every claim is false, most of them by nothing at all: rows are equal, or differ by just the margin, or the wrong way.
FALSE = experiment(
    GREATER,
    claim("greater", row=row("768"), than=row("256")),
    claim("greater", row=row("64"), than=55),
    claim("within", row=row("128"), of=row("256"), margin=1.0),
    claim("ordered", order=[row("128"), row("64")]),
    claim("at-chance", row=row("64")),
    claim("monotone", axis="embedding_size", direction="rising"),
    PEAK,
)
FALSE_MEANS = {"64": 55.0, "128": 55.0, "256": 54.0, "768": 54.0}


@pytest.mark.parametrize("n", [3, 5])
def test_at_most_one_table_in_twenty_supports_a_claim_that_is_false(n):
    rng = np.random.default_rng(n)
    tables = 400
    wrong = sum(
        any(claimed.decision is Decision.SUPPORTED for claimed in decide(FALSE, table(noisy(rng, FALSE_MEANS, n))))
        for _ in range(tables)
    )
    assert 0 < wrong <= 0.05 * tables


@pytest.mark.parametrize(("n", "effect"), [(3, 4.0), (5, 2.5)])
def test_real_effects_are_found_with_the_stated_power_and_never_denied(n, effect):
    true = experiment(GREATER, claim("greater", row=row("768"), than=row("256")))
    means = {"64": 60.0, "128": 60.0 + effect, "256": 60.0, "768": 60.0 + effect}
    rng = np.random.default_rng(n)
    tables = 200
    decisions = Counter(
        str(claimed.decision) for _ in range(tables) for claimed in decide(true, table(noisy(rng, means, n)))
    )
    # Noise of sd 1 in four rows; what a seed does to all rows alike falls out of the pairs.
    stated = power((2 / n) ** 0.5, 3 * (n - 1), [effect], 0.05 / 2)
    assert 0.6 < stated < 0.95
    # A row that spreads more by chance widens its comparisons.
    assert decisions["supported"] / (2 * tables) > stated - 0.12
    assert decisions["not supported"] == 0


def learnt(values, column: str = "average", floor: float = 50.0, n: int = 2_000):
    """Rows of scores over so many answers, with what constant answers score."""
    return table(
        values,
        column,
        score=lambda value: scored(value, floor, n, low=max(-100.0, value - 2), high=min(100.0, value + 2)),
    )


COMPARING_TWO = [GREATER, WITHIN | {"margin": 30.0}, claim("ratio", row=row("128"), to=row("64"), low=1)]
COMPARING_MORE = [claim("ordered", order=[row("768"), row("256"), row("64")]), RISING, PEAK | {"at": "768"}]


@pytest.mark.parametrize("content", COMPARING_TWO)
@pytest.mark.parametrize("low", [49.0, 50.5])
def test_a_check_of_two_rows_is_not_decided_if_one_is_at_the_floor(content, low):
    result = decide(experiment(content), learnt(around(low, 60, 70, 80)))[0]
    assert result.decision is Decision.NOT_LEARNT
    assert "E = 64" in result.reason
    assert (result.p, result.seeds, result.lack) == (None, None, "")
    assert decide(experiment(content), learnt(around(54, 60, 70, 80)))[0].decision is Decision.SUPPORTED


@pytest.mark.parametrize("content", COMPARING_MORE)
def test_rows_that_learnt_support_a_claim_without_those_at_the_floor(content):
    result = decide(experiment(content), learnt(around(49, 60, 70, 80)))[0]
    assert result.decision is Decision.SUPPORTED
    assert result.reason == "without rows at the floor: E = 64"
    assert result.comparison is not None
    assert all(labels != row("64") for _, labels in result.comparison.weights)
    assert decide(experiment(content), learnt(around(49, 50, 50, 80)))[0].decision is Decision.NOT_LEARNT


@pytest.mark.parametrize("content", [PEAK, claim("ordered", order=[row("128"), row("256"), row("64")])])
def test_rows_that_learnt_deny_a_claim_without_those_at_the_floor(content):
    result = decide(experiment(content), learnt(around(49, 60, 70, 80)))[0]
    assert result.decision is Decision.NOT_SUPPORTED
    assert result.comparison is not None
    assert all(labels != row("64") for _, labels in result.comparison.weights)
    undecided = decide(experiment(content), learnt(around(49, 60, 60, 60)))[0]
    assert undecided.decision is Decision.UNDECIDED
    assert undecided.reason == "without rows at the floor: E = 64"


def test_an_effect_that_is_shown_to_be_below_the_papers_is_smaller_and_no_failure():
    papers = {"64": "60", "128": "70"}
    result = decide(experiment(GREATER, paper=papers), table(around(60, 60.2, 70, 80)))[0]
    assert result.decision is Decision.SMALLER
    assert result.interval is not None
    assert result.interval[0] < 0 < result.interval[1] < 10
    close = {"64": "60", "128": "60.1"}
    assert decide(experiment(GREATER, paper=close), table(around(60, 60.2, 70, 80)))[0].decision is Decision.UNDECIDED
    assert decide(experiment(GREATER, paper=papers), table(around(60, 65, 70, 80)))[0].decision is Decision.SUPPORTED


def test_an_undecided_claim_says_what_its_seeds_would_show():
    result = decide(experiment(GREATER), table(around(60, 60.2, 70, 80)))[0]
    assert result.detectable is not None
    shown = decide(experiment(GREATER), table(around(60, 60 + 1.5 * result.detectable, 70, 80)))[0]
    assert shown.decision is Decision.SUPPORTED
    assert shown.detectable is None


def test_a_level_whose_interval_contains_the_bound_is_said_to_straddle_it():
    content = claim("greater", row=row("64"), than=55)
    result = decide(experiment(content), learnt(around(55.1, 60, 70, 80)))[0]
    assert result.decision is Decision.UNDECIDED
    assert result.reason == "the interval straddles 55 %"


@pytest.mark.parametrize(
    ("means", "decision"), [((50, 51), "not learnt"), ((50, 57), "not supported"), ((58, 50), "supported")]
)
def test_a_level_is_decided_if_some_row_has_learnt_the_metric(means, decision):
    content = claim("greater", row=row("64"), than=55) | {"metric": "sop_accuracy"}
    assert decide(experiment(content), learnt(around(*means), "sop_accuracy"))[0].decision == decision


def with_losses(losses: dict[str, float], means=(80, 82, 83, 84)):
    """Rows with averages, and with losses that lie closely around these."""
    rows = table(around(*means))
    for item in rows:
        for place, run in enumerate(item.runs):
            loss = losses[item.labels["embedding_size"]] + 0.01 * SPREAD[run.seed] * (1 + len(item.labels))
            item.runs[place] = with_numbers(run, {"mlm_loss": loss} | {f"{task}_loss": loss / 4 for task in AVERAGED})
    return rows


def test_each_claim_on_the_average_has_companions_with_lower_losses_better():
    rows = with_losses({"64": 4.0, "128": 3.5, "256": 3.6, "768": 3.3})
    claims = [GREATER, PEAK, WITHIN, CHANCE, claim("greater", row=row("64"), than=55)]
    result = companions(experiment(*claims), rows)
    assert [(claimed.claim.check, claimed.claim.metric, str(claimed.decision)) for claimed in result] == [
        ("greater", "mlm_log_likelihood", "supported"),
        ("greater", "average_log_likelihood", "supported"),
        ("peak-at", "mlm_log_likelihood", "not supported"),
        ("peak-at", "average_log_likelihood", "not supported"),
    ]
    assert result[0].effect == pytest.approx(0.5, abs=0.01)


def test_companions_are_a_separate_family():
    rows = with_losses({"64": 4.0, "128": 4.01, "256": 4.0, "768": 4.0})
    one, many = (companions(experiment(*[GREATER] * n), rows) for n in (1, 4))
    assert one[0].p is not None
    assert one[0].p < 1 / 8
    assert many[0].p == pytest.approx(4 * one[0].p)
    assert decide(experiment(GREATER), rows)[0].p == decide(experiment(GREATER), table(around(80, 82, 83, 84)))[0].p


@pytest.mark.parametrize(("mlm", "decision"), [(5.0, "not learnt"), (9.0, "supported")])
def test_the_loss_of_a_row_at_the_floor_of_its_accuracy_decides_nothing(mlm, decision):
    rows = with_losses({"64": 4.0, "128": 3.5, "256": 3.6, "768": 3.3})
    rows[0].runs[:] = [with_numbers(run, {"mlm_accuracy": scored(mlm + SPREAD[run.seed], 5.0)}) for run in rows[0].runs]
    result = companions(experiment(GREATER), rows)
    assert [str(claimed.decision) for claimed in result] == [decision, "supported"]
