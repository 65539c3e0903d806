import pytest
from scipy.stats import binomtest

from albert_lab.score import share, wilson


@pytest.mark.parametrize(("correct", "n"), [(0, 10), (5, 10), (512, 1000), (10, 10)])
def test_the_interval_is_the_wilson_interval_in_percent(correct, n):
    expected = binomtest(correct, n).proportion_ci(0.95, method="wilson")
    assert wilson(correct, n) == pytest.approx((100 * expected.low, 100 * expected.high))


def test_a_share_of_right_answers_is_a_percentage_within_its_interval():
    score = share(3, 4, floor=50.0, by="head")
    assert score.value == 75
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high
