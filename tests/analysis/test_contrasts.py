import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from toy_frames import toy_frame

from albert_lab.analysis.contrasts import contrast, counts, holm
from albert_lab.analysis.frame import RANDOM
from albert_lab.runs.reported import AVERAGED

pytestmark = pytest.mark.filterwarnings("ignore:Precision loss")
few = settings(max_examples=25, deadline=None)
values = st.floats(10, 90).map(lambda value: round(value, 3))
samples = st.lists(st.tuples(values, values), min_size=3, max_size=8)


@few
@given(samples)
def test_two_rows_of_shared_seeds_are_compared_by_a_paired_t_test(pairs):
    first, second = zip(*pairs, strict=True)
    if np.std(np.subtract(first, second)) < 1e-3:
        return
    known = stats.ttest_rel(first, second, alternative="greater")
    found = contrast(toy_frame({"sop": {"a": first, "b": second}}), "sop", {"a": 1, "b": -1})
    assert found.p == pytest.approx(known.pvalue, abs=1e-9)
    assert (found.low, found.high) == pytest.approx(stats.ttest_rel(first, second).confidence_interval(), abs=1e-6)
    assert found.p + found.p_against == pytest.approx(1)


@few
@given(samples)
def test_two_rows_of_other_seeds_are_compared_by_a_t_test_of_equal_variances(pairs):
    first, second = zip(*pairs, strict=True)
    if np.std(first) + np.std(second) < 1e-3:
        return
    other = {seed + 100: value for seed, value in enumerate(second)}
    found = contrast(toy_frame({"sop": {"a": first, "b": other}}), "sop", {"a": 1, "b": -1})
    assert found.p == pytest.approx(stats.ttest_ind(first, second, alternative="greater")[1], abs=1e-9)


@few
@given(samples)
def test_the_level_of_a_single_row_is_tested_by_a_t_test_of_one_sample(pairs):
    first = [value for value, _ in pairs]
    if np.std(first) < 1e-3:
        return
    found = contrast(toy_frame({"sop": {"a": first}}), "sop", {"a": 1}, bound=50)
    assert found.p == pytest.approx(stats.ttest_1samp(first, 50, alternative="greater")[1], abs=1e-9)


def test_the_spread_is_pooled_over_all_rows_of_the_table():
    alone = contrast(toy_frame({"x": {"a": [1, 1.1], "b": [2, 2.1]}}), "x", {"a": 1})
    noisy = contrast(toy_frame({"x": {"a": [1, 1.1], "b": [2, 9]}}), "x", {"a": 1})
    assert noisy.high - noisy.low > 3 * (alone.high - alone.low)


def test_an_interaction_is_a_contrast_of_four_rows_seed_by_seed():
    shift = np.array([0, 5, -5, 2])
    frame = toy_frame({"x": {row: (mean + shift).tolist() for row, mean in zip("abcd", (4, 1, 2, 1.5), strict=True)}})
    found = contrast(frame, "x", {"a": 1, "b": -1, "c": -1, "d": 1})
    assert (found.effect, found.low, found.high) == pytest.approx((2.5, 2.5, 2.5), abs=1e-6)


def test_rows_of_the_same_runs_count_once():
    frame = toy_frame({"x": {"a": [1, 2, 3], "b": [2, 2, 4]}})
    again = frame.numbers[frame.numbers["row"] == "b"].assign(row="twin")
    twins = replace(frame, numbers=pd.concat([frame.numbers, again]))
    assert contrast(twins, "x", {"a": 1, "twin": -1}) == contrast(frame, "x", {"a": 1, "b": -1})


def test_a_single_seed_has_an_effect_and_no_interval():
    found = contrast(toy_frame({"x": {"a": [1], "b": [3]}}), "x", {"b": 1, "a": -1})
    assert found.effect == 2
    assert np.isnan([found.low, found.high, found.p]).all()


def test_rows_that_share_few_of_their_seeds_are_compared_by_their_means():
    assert contrast(toy_frame({"x": {"a": [60, 64, 65], "b": [62]}}), "x", {"a": 1, "b": -1}).effect == pytest.approx(1)


def test_a_ratio_is_the_difference_of_logarithms():
    found = contrast(toy_frame({"x": {"a": [2, 4], "b": [1, 2]}}), "x", {"a": 1, "b": -1}, log=True)
    assert np.exp(found.effect) == pytest.approx(2)


def test_a_row_without_the_metric_is_named():
    with pytest.raises(KeyError, match="b"):
        contrast(toy_frame({"x": {"a": [1, 2]}}), "x", {"a": 1, "b": -1})


def answers(rng, n, p, shared):
    """Right answers by document of a row whose documents differ in difficulty."""
    return rng.binomial(n, np.clip(p + shared, 0.01, 0.99)).astype(float)


def test_the_interval_over_documents_is_that_of_a_bootstrap_of_documents():
    rng = np.random.default_rng(0)
    n = rng.integers(20, 200, 60).astype(float)
    shared = rng.normal(0, 0.1, 60)
    sums = {row: answers(rng, n.astype(int), p, shared) for row, p in (("a", 0.6), ("b", 0.5))}
    sample = {row: [100 * right.sum() / n.sum()] * 3 for row, right in sums.items()}  # no spread over seeds
    kept = {(row, seed, "sop"): (n, right) for row, right in sums.items() for seed in range(3)}
    frame = toy_frame({"sop": sample}, documents=kept)
    drawn = rng.integers(0, 60, (4000, 60))
    for weights in ({"a": 1.0}, {"a": 1.0, "b": -1.0}):
        found = contrast(frame, "sop", weights)
        means = sum(weight * 100 * sums[row][drawn].sum(1) / n[drawn].sum(1) for row, weight in weights.items())
        assert (found.high - found.low) / 2 == pytest.approx(2 * np.std(means), rel=0.08)
    found = contrast(frame, "sop", {"a": 1.0, "b": -1.0}, log=True)
    factors = np.log(sums["a"][drawn].sum(1) / sums["b"][drawn].sum(1))
    assert (found.high - found.low) / 2 == pytest.approx(2 * np.std(factors), rel=0.08)


def test_the_error_of_the_logarithm_of_an_average_is_that_of_the_average_over_its_level():
    kept = {("a", 0, task): (np.full(9, 9), np.arange(9) % 2 + place) for place, task in enumerate(AVERAGED)}
    levels = [100 * right.mean() / 9 for _, right in kept.values()]
    frame = toy_frame({"average": {"a": [float(np.mean(levels))]}}, documents=kept)
    points, logarithm = (contrast(frame, "average", {"a": 1}, log=log, alone=True) for log in (False, True))
    assert logarithm.high - logarithm.low == pytest.approx((points.high - points.low) / np.mean(levels))


def test_rows_that_were_scored_on_the_same_documents_share_their_difficulty():
    rng = np.random.default_rng(1)
    n = np.full(40, 50.0)
    right = answers(rng, n.astype(int), 0.6, rng.normal(0, 0.2, 40))
    kept = {(row, seed, "sop"): (n, right) for row in "ab" for seed in range(2)}
    frame = toy_frame({"sop": {"a": [60, 61], "b": [50, 52]}}, documents=kept)
    bare = toy_frame({"sop": {"a": [60, 61], "b": [50, 52]}})
    difference, level = {"a": 1, "b": -1}, {"a": 1}
    assert contrast(frame, "sop", difference) == contrast(bare, "sop", difference)
    assert contrast(frame, "sop", level).low < contrast(bare, "sop", level).low


def test_the_variances_of_seeds_and_of_documents_add_up():
    rng = np.random.default_rng(2)
    n = np.full(30, 40.0)
    right = answers(rng, n.astype(int), 0.5, rng.normal(0, 0.1, 30))
    spread = [49.0, 52.0, 50.0]
    frame = toy_frame({"sop": {"a": spread}}, documents={("a", seed, "sop"): (n, right) for seed in range(3)})
    over_seeds, over_documents = np.var(spread, ddof=1) / 3, np.var(100 * right / 40, ddof=1) / 30
    total = over_seeds + over_documents
    df = total**2 / (over_seeds**2 / 2 + over_documents**2 / 29)
    found = contrast(frame, "sop", {"a": 1})
    assert found.high - found.effect == pytest.approx(stats.t.ppf(0.975, df) * np.sqrt(total))


def test_holms_adjustment_leaves_out_what_is_unknown():
    assert holm([0.01, math.nan, 0.04, 0.02]) == pytest.approx([0.03, math.nan, 0.04, 0.04], nan_ok=True)
    assert math.isnan(holm([math.nan])[0])


@settings(max_examples=8, deadline=None)  # statsmodels collects garbage at each call
@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holms_adjustment_is_that_of_statsmodels(p_values):
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


@pytest.mark.parametrize(
    ("best", "random", "words", "says"),
    [(70, 60, 50, 1), (70, 60, math.nan, 1), (70, 69.9, 50, 0), (70, 60, 69.9, 0), (70, None, 50, 0)],
)
def test_a_task_counts_if_its_best_row_is_above_random_weights_and_words_alone(best, random, words, says):
    rows = {"a": best, "b": best - 5} | ({} if random is None else {f"a{RANDOM}": random})
    of_rows = {row: [mean - place, mean, mean + place] for place, (row, mean) in enumerate(rows.items(), 1)}
    frame = toy_frame({"mnli": of_rows}, tasks={"mnli": "mnli", "mnli_f1": "mnli"}, words=words)
    assert counts(frame, "mnli") is bool(says)  # nan: of spans there are no words alone
    assert counts(frame, "mnli_f1") is bool(says)


def test_a_task_of_one_model_counts_by_its_examples():
    by_document = {"a": np.arange(10) % 2 * 2 + 8, f"a{RANDOM}": np.arange(10) % 3 + 5}
    kept = {(row, 0, "mnli"): (np.full(10, 10), right) for row, right in by_document.items()}
    values = {row: [float(right.sum())] for row, right in by_document.items()}
    for words, says in ((69, True), (89, False)):
        frame = toy_frame({"mnli": values, "mlm_accuracy": values}, documents=kept, tasks={"mnli": "mnli"}, words=words)
        assert (counts(frame, "mnli"), counts(frame, "mlm_accuracy")) == (says, True), "held-out text always counts"
