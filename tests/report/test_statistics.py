import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from albert_lab.report.statistics import Components, components, estimate, holm, power, seeds_needed

A = {0: 80.1, 1: 81.4, 2: 79.6, 3: 80.9}
B = {0: 79.2, 1: 80.9, 2: 78.8, 3: 79.5}
OTHER_SEEDS = {10: 79.2, 11: 80.9, 12: 78.8, 13: 79.5, 14: 79.1}


def samples(n: int, seed: int = 0, sd: float = 1.0) -> dict[int, float]:
    return dict(enumerate(np.random.default_rng(seed).normal(80, sd, n)))


def test_a_mean_has_students_interval():
    found = estimate([A])
    expected = stats.ttest_1samp(list(A.values()), 0).confidence_interval()
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert (found.n, found.is_paired) == (4, False)


def test_seeds_that_two_rows_share_are_paired():
    found = estimate([A, B], [1, -1])
    oracle: Any = stats.ttest_rel(list(A.values()), list(B.values()))
    expected = oracle.confidence_interval()
    assert found.is_paired
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert 2 * found.above(0) == pytest.approx(oracle.pvalue)


def test_other_seeds_are_compared_by_welch():
    found = estimate([A, OTHER_SEEDS], [1, -1])
    oracle: Any = stats.ttest_ind(list(A.values()), list(OTHER_SEEDS.values()), equal_var=False)
    expected = oracle.confidence_interval()
    assert not found.is_paired
    assert found.df == pytest.approx(oracle.df)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert 2 * found.above(0) == pytest.approx(oracle.pvalue)


def test_a_missing_seed_leaves_the_others_paired():
    found = estimate([A, {seed: B[seed] for seed in (0, 1, 3)}], [1, -1])
    expected = stats.ttest_rel([A[seed] for seed in (0, 1, 3)], [B[seed] for seed in (0, 1, 3)]).confidence_interval()
    assert (found.n, found.is_paired) == (3, True)
    assert found.interval == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("n", [10, 15])
def test_from_ten_seeds_on_the_interval_is_bca(n):
    values = {seed: math.exp(value - 80) for seed, value in samples(n).items()}
    found = estimate([values])
    oracle: Any = stats.bootstrap((list(values.values()),), np.mean, method="BCa", rng=np.random.default_rng(1))
    assert found.interval is not None
    # Both are random in their last digits.
    assert found.interval == pytest.approx((oracle.confidence_interval.low, oracle.confidence_interval.high), rel=0.03)
    # Student's is symmetric; the values are skewed to the right.
    assert found.interval[1] - found.value > 1.1 * (found.value - found.interval[0])


def test_the_same_seeds_give_the_same_bootstrap_and_nine_are_students():
    assert estimate([samples(12)]) == estimate([samples(12)])
    nine = samples(9)
    expected = stats.t.interval(0.95, 8, np.mean(list(nine.values())), stats.sem(list(nine.values())))
    assert estimate([nine]).interval == pytest.approx(expected)


@given(st.integers(3, 9), st.floats(-5, 5), st.integers(0, 10_000))
def test_a_two_sided_p_value_says_what_the_interval_says(n, bound, seed):
    found = estimate([samples(n, seed)])
    assert found.interval is not None
    bound += 80
    assert (2 * min(found.above(bound), found.below(bound)) < 0.05) == (
        not found.interval[0] <= bound <= found.interval[1]
    )


def test_a_single_seed_has_no_interval_and_no_evidence():
    found = estimate([{0: 80.0}, {0: 70.0}], [1, -1])
    assert (found.value, found.sd, found.interval, found.above(0)) == (10.0, None, None, 1.0)


def test_seeds_that_agree_to_the_answer_do_not_prove_that_there_is_no_spread():
    # 40 answers: a step of 2.5 points, so rounding alone has an sd of 2.5 * sqrt(2 / 12) = 1.02 in a difference.
    found = estimate([dict.fromkeys(range(3), 52.5), dict.fromkeys(range(3), 50.0)], [1, -1], resolution=2.5)
    assert found.sd == pytest.approx(1.0206, abs=1e-4)
    assert 2 * found.above(0) == pytest.approx(0.0514, abs=1e-4)
    exact = estimate([dict.fromkeys(range(3), 12.0)], [1])
    assert exact.interval == (12.0, 12.0)
    assert (exact.above(11), exact.above(12), exact.above(13)) == (0.0, 0.5, 1.0)


def test_holm_on_a_hand_worked_family():
    # Sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 and never falling.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_the_plain_value_and_bonferronis(p_values):
    for plain, adjusted in zip(p_values, holm(p_values), strict=True):
        assert plain <= adjusted <= min(1.0, len(p_values) * plain) + 1e-12


@pytest.mark.parametrize(("n", "effect"), [(3, 4.0), (5, 1.5), (20, 0.66)])
def test_power_is_the_rate_at_which_planted_effects_are_found(n, effect):
    drawn = np.random.default_rng(n).normal(effect, 1, (20_000, n))
    oracle: Any = stats.ttest_1samp(drawn, 0, axis=1, alternative="greater")
    found = (oracle.pvalue < 0.025).mean()
    assert power(n, 1.0, [effect], 0.05) == pytest.approx(found, abs=0.015)


@pytest.mark.parametrize("sd", [0.01, 0.3, 1.0, 1.5, 1.67, 10.0])
@pytest.mark.parametrize("effect", [0.01, 0.5, 2.1, 2.5, 50.0])
def test_more_seeds_never_have_less_power(sd, effect):
    found = [power(n, sd, [effect], 0.05 / 8) for n in range(3, 1001, 7)]
    assert all(more >= fewer - 1e-9 for fewer, more in pairwise(found))


def test_seeds_needed_is_the_least_number_that_gives_the_power():
    assert seeds_needed(1.5, [2.5], 0.05 / 8) == 9
    assert seeds_needed(1.0, [1.0], 0.05) == 10  # the textbook's n for d = 1 by a paired t-test
    assert seeds_needed(1.0, [100.0], 0.05) == 3
    assert seeds_needed(1.0, [1.0, 1.0], 0.05) == 13  # both bounds of an equivalence
    assert seeds_needed(1.0, [0.001], 0.05) is None
    assert seeds_needed(0.0, [0.1], 0.05) == 3


def test_spread_of_fine_tuning_and_of_pre_training_are_told_apart():
    rng = np.random.default_rng(0)
    runs = [list(80 + rng.normal(0, 2.0) + rng.normal(0, 0.5, 5)) for _ in range(400)]
    found = components(runs)
    assert found.pretraining == pytest.approx(2.0, rel=0.1)
    assert found.finetuning == pytest.approx(0.5, rel=0.05)
    assert (found.runs, found.finetunings) == (400, 2000)


def test_spread_between_runs_that_fine_tuning_explains_is_none_of_pre_training():
    # Means 81 and 81; within each run a variance of 2.
    found = components([[80.0, 82.0], [82.0, 80.0]])
    assert (found.pretraining, found.finetuning) == (0.0, pytest.approx(math.sqrt(2)))
    assert components([[80.0]]) == Components(None, None, 1, 1)
    assert components([[80.0], [82.0]]) == Components(math.sqrt(2), None, 2, 2)
