import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.multitest import multipletests

from albert_lab.analysis.statistics import (
    Components,
    Estimate,
    PooledSpread,
    components,
    detectable,
    estimate,
    holm,
    power,
    seeds_needed,
)

A = {0: 80.1, 1: 81.4, 2: 79.6, 3: 80.9}
B = {0: 79.2, 1: 80.9, 2: 78.8, 3: 79.5}
OTHER_SEEDS = {10: 79.2, 11: 80.9, 12: 78.8, 13: 79.5, 14: 79.1}


def samples(n: int, seed: int = 0, sd: float = 1.0) -> dict[int, float]:
    return dict(enumerate(np.random.default_rng(seed).normal(80, sd, n)))


def similar_rows() -> list[dict[int, float]]:
    """Five rows whose noise is turned from row to row, so that none of them spreads more than the others."""
    of_seed = np.linspace(-1, 1, 5)
    turns = [np.roll([0.3, -0.3, 0.1, -0.1, 0.0], place) for place in range(5)]
    return [dict(enumerate(80 + place + of_seed + turn)) for place, turn in enumerate(turns)]


def regression(rows: list[dict[int, float]], formula: str) -> Any:
    cells = [(row, seed, value) for row, sample in enumerate(rows) for seed, value in sample.items()]
    return ols(formula, data=pd.DataFrame(cells, columns=["row", "seed", "score"])).fit()


def test_a_mean_has_students_interval():
    result = estimate([A])
    expected = stats.ttest_1samp(list(A.values()), 0).confidence_interval()
    assert result.interval == pytest.approx((expected.low, expected.high))
    assert (result.n, result.is_paired) == (4, False)


def test_two_rows_with_shared_seeds_give_a_paired_t_test():
    result = estimate([A, B], [1, -1])
    oracle: Any = stats.ttest_rel(list(A.values()), list(B.values()))
    expected = oracle.confidence_interval()
    assert result.is_paired
    assert result.interval == pytest.approx((expected.low, expected.high))
    assert 2 * result.above(0) == pytest.approx(oracle.pvalue)


def test_two_rows_with_other_seeds_and_equal_spread_give_students_t_test():
    others = {seed + 10: value - 1 for seed, value in A.items()}
    result = estimate([A, others], [1, -1])
    oracle: Any = stats.ttest_ind(list(A.values()), list(others.values()))
    assert not result.is_paired
    assert result.df == pytest.approx(oracle.df)
    assert 2 * result.above(0) == pytest.approx(oracle.pvalue)


def test_with_other_seeds_the_wider_row_has_fewer_degrees_of_freedom():
    wide = {seed: 10 * value for seed, value in OTHER_SEEDS.items()}
    result = estimate([A, wide], [1, -1])
    oracle: Any = stats.ttest_ind(list(A.values()), list(wide.values()), equal_var=False)
    pooled: Any = stats.ttest_ind(list(A.values()), list(wide.values()))
    assert oracle.df < result.df <= pooled.df
    assert result.error is not None
    assert result.error > abs(result.value / oracle.statistic)  # of Welch's test


def test_rows_of_equal_spread_are_tested_as_contrasts_of_a_regression_on_rows_and_seeds():
    rows = similar_rows()
    result = PooledSpread(rows).estimate({1: 1.0, 0: -1.0})
    oracle = regression(rows, "score ~ C(row) + C(seed)").t_test("C(row)[T.1] = 0")
    assert (result.value, result.error) == pytest.approx((oracle.effect.item(), oracle.sd.item()))
    assert result.df == pytest.approx((5 - 1) * (5 - 1))
    assert 2 * result.above(0) == pytest.approx(oracle.pvalue.item())


def test_a_missing_seed_leaves_the_comparison_adjusted_for_seeds():
    rows = similar_rows()
    del rows[0][0]  # the worst seed for all rows
    result = PooledSpread(rows).estimate({1: 1.0, 0: -1.0})
    oracle = regression(rows, "score ~ C(row) + C(seed)").t_test("C(row)[T.1] = 0")
    assert result.value == pytest.approx(oracle.effect.item())
    assert (result.n, result.is_paired) == (4, True)
    assert result.error is not None
    assert result.error >= oracle.sd.item() - 1e-9


def test_seeds_are_unpaired_if_rows_share_at_most_half_of_them():
    rows = [A, {2: 80.0, 3: 81.0, 8: 79.0, 9: 80.5}]
    result = PooledSpread(rows).estimate({0: 1.0, 1: -1.0})
    assert not result.is_paired
    assert result.value == pytest.approx(np.mean(list(A.values())) - 80.125)


def test_a_row_of_larger_spread_keeps_it_and_others_are_not_narrowed():
    rows = similar_rows()
    alike = PooledSpread(rows).estimate({0: 1.0, 1: -1.0})
    rows[3] = {seed: 83 + 8 * (value - 83) for seed, value in rows[3].items()}
    spread = PooledSpread(rows)
    beside, within = spread.estimate({0: 1.0, 1: -1.0}), spread.estimate({0: 1.0, 3: -1.0})
    assert alike.error is not None
    assert beside.error is not None
    assert within.error is not None
    assert alike.error < beside.error < within.error
    assert within.df is not None
    assert 4 <= within.df < 12 < 16 == pytest.approx(beside.df)


def test_effects_of_seeds_on_all_rows_reduce_the_degrees_of_freedom_of_a_level():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, (6, 5))
    alone = PooledSpread([dict(enumerate(row)) for row in noise]).estimate({0: 1.0}).df
    moved = PooledSpread([dict(enumerate(row)) for row in noise + rng.normal(0, 10, 5)]).estimate({0: 1.0}).df
    assert alone is not None
    assert moved is not None
    assert 4 <= moved < 5 < 12 < alone <= 24


@given(st.integers(3, 9), st.floats(-5, 5), st.integers(0, 10_000))
def test_a_two_sided_p_value_agrees_with_the_interval(n, bound, seed):
    result = estimate([samples(n, seed)])
    assert result.interval is not None
    bound += 80
    assert (2 * min(result.above(bound), result.below(bound)) < 0.05) == (
        not result.interval[0] <= bound <= result.interval[1]
    )


def test_a_single_seed_has_no_interval_and_no_evidence():
    result = estimate([{0: 80.0}, {0: 70.0}], [1, -1])
    assert (result.value, result.error, result.interval, result.above(0)) == (10.0, None, None, 1.0)


def test_identical_scores_do_not_imply_zero_variance():
    # 40 answers: a step of 2.5 points, so rounding alone has a variance of 2.5 ** 2 / 12 in each score.
    result = estimate([dict.fromkeys(range(3), 52.5), dict.fromkeys(range(3), 50.0)], [1, -1], resolution=2.5)
    assert result.error == pytest.approx(2.5 * math.sqrt(2 / 12 / 3))
    assert 2 * result.above(0) == pytest.approx(0.0514, abs=1e-4)
    exact = estimate([dict.fromkeys(range(3), 12.0)], [1])
    assert exact.interval == pytest.approx((12.0, 12.0))
    assert (exact.above(11), exact.below(13)) == (0.0, 0.0)


def test_the_noise_of_examples_widens_an_interval_and_more_seeds_do_not_reduce_it():
    result = Estimate(1.0, 5, True, error=0.3, df=4.0).with_examples(0.16, df=199)
    assert result.error == pytest.approx(0.5)
    assert result.df == pytest.approx(0.25**2 / (0.09**2 / 4 + 0.16**2 / 199))
    assert result.with_seeds(1_000)[0] == pytest.approx(0.4, abs=0.001)
    assert result.with_seeds(5) == pytest.approx((0.5, result.df))
    assert seeds_needed(result, [1.0], 0.05) is None
    assert seeds_needed(result, [1.3], 0.05) is not None


def test_holm_agrees_with_statsmodels():
    drawn = np.random.default_rng(0).random((5, 7)) ** 3
    for p_values in drawn:
        assert holm(list(p_values)) == pytest.approx(multipletests(p_values, method="holm")[1])


@pytest.mark.parametrize(("n", "effect"), [(3, 4.0), (5, 1.5), (20, 0.66)])
def test_power_is_the_rate_at_which_planted_effects_are_found(n, effect):
    drawn = np.random.default_rng(n).normal(effect, 1, (20_000, n))
    oracle: Any = stats.ttest_1samp(drawn, 0, axis=1, alternative="greater")
    result = (oracle.pvalue < 0.025).mean()
    assert power(1 / math.sqrt(n), n - 1, [effect], 0.05) == pytest.approx(result, abs=0.015)


def spread_of(sd: float) -> Estimate:
    """A difference with so much spread of one seed, as found on three."""
    return Estimate(0.0, 3, True, sd / math.sqrt(3), 2.0)


@pytest.mark.parametrize("sd", [0.01, 0.3, 1.0, 1.5, 1.67, 10.0])
@pytest.mark.parametrize("effect", [0.01, 0.5, 2.1, 2.5, 50.0])
def test_more_seeds_never_have_less_power(sd, effect):
    results = [power(*spread_of(sd).with_seeds(n), [effect], 0.05 / 8) for n in range(3, 1001, 7)]
    assert all(more >= fewer - 1e-9 for fewer, more in pairwise(results))


def test_seeds_needed_is_the_least_number_that_gives_the_power():
    assert seeds_needed(spread_of(1.5), [2.5], 0.05 / 8) == 9
    assert seeds_needed(spread_of(1.0), [1.0], 0.05) == 10  # the textbook's n for d = 1 by a paired t-test
    assert seeds_needed(spread_of(1.0), [100.0], 0.05) == 3
    assert seeds_needed(spread_of(1.0), [1.0, 1.0], 0.05) == 13  # both bounds of an equivalence
    assert seeds_needed(spread_of(1.0), [0.001], 0.05) is None
    assert seeds_needed(spread_of(0.0), [0.1], 0.05) == 3


def test_spread_of_fine_tuning_and_of_pre_training_are_separated():
    rng = np.random.default_rng(0)
    runs = [list(80 + rng.normal(0, 2.0) + rng.normal(0, 0.5, 5)) for _ in range(400)]
    result = components(runs)
    assert result.pretraining == pytest.approx(2.0, rel=0.1)
    assert result.finetuning == pytest.approx(0.5, rel=0.05)
    assert (result.runs, result.finetunings) == (400, 2000)


def test_spread_that_fine_tuning_explains_does_not_count_as_pre_training():
    # Means 81 and 81; within each run a variance of 2.
    result = components([[80.0, 82.0], [82.0, 80.0]])
    assert (result.pretraining, result.finetuning) == (0.0, pytest.approx(math.sqrt(2)))
    assert components([[80.0]]) == Components(None, None, 1, 1)
    assert components([[80.0], [82.0]]) == Components(math.sqrt(2), None, 2, 2)


@pytest.mark.parametrize("bounds", [1, 2])
def test_a_detectable_distance_from_all_bounds_is_shown_in_four_of_five_cases(bounds):
    distance = detectable(0.7, 6.0, 0.05, bounds)
    assert power(0.7, 6.0, [distance] * bounds, 0.05) == pytest.approx(0.8)
