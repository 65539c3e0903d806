import numpy as np
import pytest
from scipy.stats import binomtest

from albert_lab.score import exceeds, wilson


@pytest.mark.parametrize(("correct", "n"), [(0, 10), (5, 10), (512, 1000), (10, 10)])
def test_the_interval_is_the_wilson_interval_in_percent(correct, n):
    expected = binomtest(correct, n).proportion_ci(0.95, method="wilson")
    assert wilson(correct, n) == pytest.approx((100 * expected.low, 100 * expected.high))


def test_a_floor_that_was_measured_is_exceeded_in_one_of_forty_cases_if_both_scores_are_equally_good():
    n, draws = 2000, 4000
    rng = np.random.default_rng(0)
    rights = rng.binomial(n, 0.64, size=(draws, 2))  # independent errors, which the interval assumes
    exceeded = [exceeds(100 * a / n, wilson(a, n)[0], 100 * b / n, n) for a, b in rights.tolist()]
    assert np.mean(exceeded) == pytest.approx(0.025, abs=0.008)
