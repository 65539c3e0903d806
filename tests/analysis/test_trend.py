from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, linregress
from scipy.stats import t as student
from trend_simulation import direction_with, own_errors, simulate

from albert_lab.analysis import trend
from albert_lab.analysis.trend import Effect

# Trials of the BCG vaccine: latitude, log relative risk and its variance, and what R's package metafor makes of them.
LATITUDES = (44, 55, 42, 52, 13, 44, 19, 13, 27, 42, 18, 33, 33)
RISKS = (-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.0120, -0.4694, -1.3713, -0.3394, 0.4459)
RISKS = (*RISKS, -0.0173)
VARIANCES = (0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124, 0.5325, 0.0714)


def ladder(*values: float, error: float = 0.1, seeds: int = 3) -> list[Effect]:
    return [Effect(12.0 + rung, value, seeds, error, 2 * len(values)) for rung, value in enumerate(values)]


def fitted(*values: float, error: float = 0.1) -> trend.Trend:
    result = trend.fit(ladder(*values, error=error))
    assert result is not None
    return result


def test_the_line_and_the_scatter_are_those_of_a_published_meta_regression():
    trials = zip(LATITUDES, RISKS, VARIANCES, strict=True)
    result = trend.fit([Effect(x, y, 1, variance**0.5, 12) for x, y, variance in trials])
    assert result is not None
    assert result.tau**2 == pytest.approx(0.0764, abs=5e-5)
    assert result.slope.value == pytest.approx(-0.0291, abs=5e-5)
    assert result.level.value - result.slope.value * result.centre == pytest.approx(0.2515, abs=1e-4)


def test_the_scatter_without_a_slope_is_that_of_a_published_meta_analysis():
    result = trend.restricted_maximum(np.ones((13, 1)), np.array(RISKS), np.array(VARIANCES))
    assert result == pytest.approx(0.3132, abs=1e-4)


def test_with_equal_errors_intervals_are_those_of_a_plain_regression_whatever_the_errors():
    x, y = np.arange(5) + 12.0, (0.1, 0.5, 0.2, 0.9, 0.6)
    plain: Any = linregress(x, y)
    reach = student.ppf(0.975, 3) * plain.stderr
    for error in (0.01, 0.3, 5.0):
        result = fitted(*y, error=error)
        assert (result.slope.low, result.slope.high) == pytest.approx((plain.slope - reach, plain.slope + reach))
        assert result.p == pytest.approx(plain.pvalue)


def test_rungs_on_a_line_have_no_scatter():
    assert fitted(0.1, 0.2, 0.3, 0.4).tau == 0.0


def test_a_line_needs_three_rungs():
    assert trend.fit(ladder(0.1, 0.2)) is None


def test_the_spread_over_seeds_is_pooled_over_the_rungs():
    low, high = trend.effects([{0: 1.0, 1: 3.0}, {0: 5.0, 1: 5.0, 2: 5.0}], [1e13, 1e12])
    assert (low.log_flops, low.value, low.n) == (12.0, 5.0, 3)
    assert low.df == high.df == 3
    assert high.error == pytest.approx((2 / 3) ** 0.5 / 2**0.5)


def test_the_interval_of_a_rung_with_more_noise_than_the_others_is_wider():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(500):
        drawn = [dict(enumerate(sd * rng.normal(size=3))) for sd in (10.0, 0.5, 0.5, 0.5, 0.5, 0.5)]
        held += trend.effects(drawn, [10.0**place for place in range(6)])[0].interval.covers(0.0)
    assert held / 500 > 0.87  # 0.55 with the pooled spread alone

    flat = {0: 1.0, 1: 1.0, 2: 1.0}
    *quiet, noisy = trend.effects([flat, flat, flat, {0: -9.0, 1: 1.0, 2: 11.0}], [1e12, 1e13, 1e14, 1e15])
    assert quiet[0].error == noisy.error == pytest.approx((200 / 8) ** 0.5 / 3**0.5)  # the line weighs all alike
    # The variance of the mean is that of the rung's own seeds, 100 / 3: a pooled part of 8.33 and an excess of 25.
    df = (100 / 3) ** 2 / ((25 / 3) ** 2 / 8 + 25**2 / 2)
    assert noisy.interval.high - noisy.value == pytest.approx(student.ppf(0.975, df) * (100 / 3) ** 0.5)
    assert quiet[0].interval.high - 1.0 == pytest.approx(student.ppf(0.975, 8) * quiet[0].error)


def test_an_interval_that_is_narrower_than_the_noise_of_seeds_is_known():
    assert fitted(0.1, 0.2, 0.3, 0.4, error=0.2).is_narrow
    assert not fitted(0.1, 0.4, 0.2, 0.5, error=0.05).is_narrow
    single = trend.fit(trend.effects([{0: value} for value in (0.1, 0.2, 0.3)], [1e12, 1e13, 1e14]))
    assert single is not None
    assert not single.is_narrow


def test_a_sign_changes_only_if_both_ends_of_the_line_have_one():
    crossing = fitted(-0.05, 0.3, 0.35, 0.9, error=0.01)
    assert crossing.slope.low > 0 > crossing.line(12.0).value
    assert crossing.line(12.0).sign == 0
    assert crossing.direction() == "rises"


def test_without_a_second_seed_the_scatter_around_the_line_has_the_noise_as_well():
    single = trend.effects([{0: value} for value in (0.1, 0.5, 0.2, 0.9)], [1e12, 1e13, 1e14, 1e15])
    result = trend.fit(single)
    assert result is not None
    assert [effect.error for effect in single] == [0.0] * 4
    assert result.slope.high == pytest.approx(fitted(0.1, 0.5, 0.2, 0.9).slope.high)


@pytest.mark.parametrize(
    ("values", "direction"),
    [
        ((0.1, 0.2, 0.31, 0.4), "grows"),
        ((-0.1, -0.2, -0.31, -0.4), "grows"),
        ((0.4, 0.3, 0.21, 0.1), "shrinks"),
        ((-0.3, -0.1, 0.11, 0.3), "changes sign"),
        ((0.30, 0.28, -0.02, -0.25), "falls"),
        ((-0.30, -0.28, 0.02, 0.25), "rises"),
        ((0.1, 0.4, 0.2, 0.3), None),
    ],
)
def test_a_direction_is_that_of_the_size_of_the_effect(values, direction):
    assert fitted(*values, error=0.01).direction() == direction


def test_a_correction_for_several_tests_can_take_a_direction_back():
    result = fitted(0.1, 0.2, 0.31, 0.4)
    assert result.direction(p=0.06) is None


def test_a_prediction_is_wider_the_farther_it_reaches_and_wider_than_the_line():
    result = fitted(0.1, 0.3, 0.25, 0.45)
    near, far = (result.predict(log_flops) for log_flops in (16.0, 20.0))
    assert far.high - far.low > near.high - near.low > result.line(16.0).high - result.line(16.0).low
    assert far.sign == 0


def test_the_share_of_one_sign_is_that_of_the_more_frequent_sign():
    assert fitted(-0.1, 0.2, -0.3, -0.4).share_of_one_sign == 0.75


def test_the_top_rung_is_predicted_from_the_lower_ones_alone():
    straight, bent = (trend.validate(ladder(0.1, 0.2, 0.3, top, error=0.001)) for top in (0.4, 0.9))
    assert straight is not None
    assert bent is not None
    assert (straight.predicted.low, straight.predicted.high) == pytest.approx((bent.predicted.low, bent.predicted.high))
    assert straight.predicted.value == pytest.approx(0.4)
    assert straight.holds
    assert not bent.holds


def test_a_ladder_of_three_rungs_cannot_be_validated():
    assert trend.validate(ladder(0.1, 0.2, 0.3)) is None


def test_decision_accuracy_compares_signs_at_the_top():
    right, turning, wrong = (0.1, 0.2, 0.3, 0.4), (-0.1, 0.0, 0.1, 0.2), (0.1, 0.1, 0.1, -0.1)
    result = trend.decision_accuracy([ladder(*values) for values in (right, turning, wrong)] + [ladder(1.0, 1.0)])
    assert result is not None
    assert (result.ladder.right, result.ladder.of) == (2, 3)
    assert (result.lowest.right, result.lowest.of) == (1, 3)
    assert result.ladder.interval.covers(2 / 3)
    assert trend.decision_accuracy([ladder(1.0, 1.0)]) is None


@pytest.mark.parametrize(("rungs", "seeds", "tau"), [(3, 3, 0.3), (4, 8, 0.0), (6, 3, 1.0)])
def test_intervals_hold_in_93_to_97_percent_of_simulated_ladders_and_few_verdicts_are_false(rungs, seeds, tau):
    ladders = 200
    held = simulate(rungs, [seeds] * rungs, tau, ladders)
    low, high = binom.ppf((0.001, 0.999), ladders, (0.93, 0.97)) / ladders
    for name in ("slope", "paper", "next"):
        assert low <= held[name] <= high
    assert held.get("top", 1.0) >= low
    most = binom.ppf(0.999, ladders, 0.05) / ladders
    assert max(held["false"], held["wrong 0.2"], held["wrong 0.6"]) <= most


def test_each_scatter_is_simulated_with_noise_of_its_own():
    assert simulate(3, [3] * 3, 0.0, 60) != simulate(3, [3] * 3, 0.001, 60)


def test_a_large_slope_is_found_more_often_than_a_small_one_and_both_in_the_true_direction():
    held = simulate(6, [8] * 6, 0.1, 100)
    assert held["found 0.6"] > 0.9 > 0.5 > held["found 0.2"] > 0.1
    assert held["wrong 0.2"] + held["wrong 0.6"] <= 0.02


@pytest.mark.parametrize("slope", [-0.6, -0.2, 0.2, 0.6])
def test_a_true_slope_moves_the_line_and_widens_no_interval(slope):
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 2.4, 5)
    directions = set()
    for _ in range(40):
        drawn = 1.0 + 0.2 * rng.normal(size=(5, 3))
        sloped = drawn + slope * (x - x.mean())[:, None]
        flat, moved = (
            trend.fit(trend.effects([dict(enumerate(row)) for row in rows], list(10**x))) for rows in (drawn, sloped)
        )
        assert flat is not None
        assert moved is not None
        for before, after, by in (
            (flat.slope, moved.slope, slope),
            (flat.predict(8.2), moved.predict(8.2), slope * (8.2 - x.mean())),
        ):
            assert (after.low, after.high) == pytest.approx((before.low + by, before.high + by), abs=1e-6)
        assert direction_with(flat, slope) == moved.direction()
        directions.add(moved.direction())
    assert ("grows" if slope > 0 else "shrinks") in directions


def test_errors_of_each_rung_alone_would_make_intervals_too_narrow():
    assert simulate(6, [3] * 6, 0.0, 300, effects=own_errors)["slope"] < 0.93
