import pytest
from scipy.stats import binomtest

from albert_lab.score import wilson


@pytest.mark.parametrize(("correct", "n"), [(0, 10), (5, 10), (512, 1000), (10, 10)])
def test_the_interval_is_the_wilson_interval_in_percent(correct, n):
    expected = binomtest(correct, n).proportion_ci(0.95, method="wilson")
    assert wilson(correct, n) == pytest.approx((100 * expected.low, 100 * expected.high))
