import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from toy_frames import toy_frame

from albert_lab.analysis import spread
from albert_lab.analysis.contrasts import contrast, counts, holm, seeds_needed
from albert_lab.analysis.frame import RANDOM
from albert_lab.runs.reported import AVERAGED

few = settings(max_examples=25, deadline=None)
values = st.floats(10, 90).map(lambda value: round(value, 3))
samples = st.lists(st.tuples(values, values), min_size=3, max_size=8)
TRUNK = "trunk-{}"


def without_a_prior(*args, **options):
    """A contrast as one table alone has it, without what other rows lend."""
    with mock.patch.object(spread, "MOST_LENT", 0.0):
        return contrast(*args, **options)


DIFFERENCE, LEVEL = {"a": 1, "b": -1}, {"a": 1}


def of_trunks(first, second):
    found = contrast(toy_frame({"sop": {"a": first, "b": second}}, trunk=TRUNK), "sop", DIFFERENCE)
    interval = stats.ttest_rel(first, second).confidence_interval()
    assert (found.low, found.high) == pytest.approx(interval, abs=1e-6)
    assert found.p + found.p_against == pytest.approx(1)
    return found, stats.ttest_rel(first, second, alternative="greater")


def of_seeds(first, second):
    found = without_a_prior(toy_frame({"sop": {"a": first, "b": second}}), "sop", DIFFERENCE)
    return found, stats.ttest_ind(first, second, equal_var=False, alternative="greater")


def of_one_row(first, second):
    found = without_a_prior(toy_frame({"sop": {"a": first}}), "sop", LEVEL, bound=50)
    return found, stats.ttest_1samp(first, 50, alternative="greater")


@pytest.mark.parametrize("both", [of_trunks, of_seeds, of_one_row])
@few
@given(samples)
def test_rows_are_tested_as_t_tests_test_them(both, pairs):
    first, second = zip(*pairs, strict=True)
    if min(np.std(first), np.std(second), np.std(np.subtract(first, second))) < 1e-3:
        return
    found, known = both(first, second)
    assert found.p == pytest.approx(known[1], abs=1e-9)


def test_runs_that_all_start_from_one_trunk_are_not_paired_by_it():
    rows = {"sop": {"a": [50, 52, 57], "b": [40, 42, 47]}}
    of_one = contrast(toy_frame(rows, trunk="minilm"), "sop", DIFFERENCE)
    assert of_one == contrast(toy_frame(rows), "sop", DIFFERENCE)
    paired = contrast(toy_frame(rows, trunk=TRUNK), "sop", DIFFERENCE)
    assert paired.high - paired.low < of_one.high - of_one.low


def test_a_row_a_hundred_times_as_noisy_widens_another_interval_less_than_five_times():
    quiet = contrast(toy_frame({"x": {"a": [1, 1.1, 0.9], "b": [2, 2.1, 1.9]}}), "x", {"a": 1})
    noisy = contrast(toy_frame({"x": {"a": [1, 1.1, 0.9], "b": [2, 12, -8]}}), "x", {"a": 1})
    assert quiet.high - quiet.low < noisy.high - noisy.low < 5 * (quiet.high - quiet.low)


def test_tables_of_the_scale_keep_a_variance_from_being_tiny_by_chance():
    rows = {"x": {"a": [1.0, 1.001, 1.002]}}
    others = toy_frame({"x": {row: [3, 4 + place, 6] for place, row in enumerate("bcdef")}})
    alone, beside = toy_frame(rows), replace(toy_frame(rows), neighbours=(others,))
    widths = [
        found.high - found.low
        for found in (contrast(frame, "x", {"a": 1}) for frame in (alone, beside))
    ]
    assert widths[1] > 100 * widths[0]


def test_an_interaction_of_rows_of_the_same_trunks_is_taken_trunk_by_trunk():
    shift = np.array([0, 5, -5, 2])
    rows = {row: (mean + shift).tolist() for row, mean in zip("abcd", (4, 1, 2, 1.5), strict=True)}
    found = contrast(toy_frame({"x": rows}, trunk=TRUNK), "x", {"a": 1, "b": -1, "c": -1, "d": 1})
    assert (found.effect, found.low, found.high) == pytest.approx((2.5, 2.5, 2.5), abs=1e-6)


def test_rows_of_the_same_runs_count_once():
    frame = toy_frame({"x": {"a": [1, 2, 3], "b": [2, 2.5, 4]}})
    again = frame.numbers[frame.numbers["row"] == "b"].assign(row="twin")
    twins = replace(frame, numbers=pd.concat([frame.numbers, again]))
    assert contrast(twins, "x", {"a": 1, "twin": -1}) == contrast(frame, "x", DIFFERENCE)


def test_a_single_seed_has_an_effect_and_no_interval():
    found = contrast(toy_frame({"x": {"a": [1], "b": [3]}}), "x", {"b": 1, "a": -1})
    assert found.effect == 2
    assert np.isnan([found.low, found.high, found.p]).all()


def test_rows_that_share_few_of_their_seeds_are_compared_by_their_means():
    assert contrast(
        toy_frame({"x": {"a": [60, 64, 65], "b": [62]}}), "x", DIFFERENCE
    ).effect == pytest.approx(1)


def test_a_ratio_is_the_difference_of_logarithms():
    found = contrast(toy_frame({"x": {"a": [2, 4], "b": [1, 2]}}), "x", DIFFERENCE, log=True)
    assert np.exp(found.effect) == pytest.approx(2)


def test_a_row_without_the_metric_is_named():
    with pytest.raises(KeyError, match="b"):
        contrast(toy_frame({"x": {"a": [1, 2]}}), "x", DIFFERENCE)


def answers(rng, n, p, shared):
    """Right answers by document of a row whose documents differ in difficulty."""
    return rng.binomial(n, np.clip(p + shared, 0.01, 0.99)).astype(float)


def test_the_interval_over_documents_is_that_of_a_bootstrap_of_documents():
    rng = np.random.default_rng(0)
    n = rng.integers(20, 200, 60).astype(float)
    shared = rng.normal(0, 0.1, 60)
    sums = {row: answers(rng, n.astype(int), p, shared) for row, p in (("a", 0.6), ("b", 0.5))}
    # no spread over seeds
    sample = {row: [100 * right.sum() / n.sum()] * 3 for row, right in sums.items()}
    kept = {(row, seed, "sop"): (n, right) for row, right in sums.items() for seed in range(3)}
    frame = toy_frame({"sop": sample}, documents=kept)
    drawn = rng.integers(0, 60, (4000, 60))
    for weights in ({"a": 1.0}, {"a": 1.0, "b": -1.0}):
        found = contrast(frame, "sop", weights)
        means = sum(
            weight * 100 * sums[row][drawn].sum(1) / n[drawn].sum(1)
            for row, weight in weights.items()
        )
        assert (found.high - found.low) / 2 == pytest.approx(2 * np.std(means), rel=0.08)
    found = contrast(frame, "sop", {"a": 1.0, "b": -1.0}, log=True)
    factors = np.log(sums["a"][drawn].sum(1) / sums["b"][drawn].sum(1))
    assert (found.high - found.low) / 2 == pytest.approx(2 * np.std(factors), rel=0.08)


def test_the_error_of_the_logarithm_of_an_average_is_that_of_the_average_over_its_level():
    kept = {
        ("a", 0, task): (np.full(9, 9), np.arange(9) % 2 + place)
        for place, task in enumerate(AVERAGED)
    }
    levels = [100 * right.mean() / 9 for _, right in kept.values()]
    frame = toy_frame({"average": {"a": [float(np.mean(levels))]}}, documents=kept)
    points, logarithm = (
        contrast(frame, "average", {"a": 1}, log=log, alone=True) for log in (False, True)
    )
    assert logarithm.high - logarithm.low == pytest.approx(
        (points.high - points.low) / np.mean(levels)
    )


def test_answers_by_chance_take_nothing_from_the_variance_over_documents():
    rng = np.random.default_rng(2)
    n = np.full(30, 40.0)
    right = {seed: answers(rng, n.astype(int), 0.5, rng.normal(0, 0.1, 30)) for seed in range(3)}
    kept = {("a", seed, "sop"): (n, sums) for seed, sums in right.items()}
    mean = np.mean([*right.values()], axis=0)
    over_documents = 30 / 29 * ((100 * (mean - mean.mean()) / n.sum()) ** 2).sum()
    calm = toy_frame({"sop": {"a": [50.0, 50.0, 50.001]}}, documents=kept)
    assert contrast(calm, "sop", LEVEL).high - 50 > 1.9 * np.sqrt(over_documents)


@pytest.mark.parametrize(
    ("distance", "documents"), [(1.0, 0.0), (0.5, 0.0), (1.0, 0.3), (2.0, 0.1)]
)
def test_the_seeds_needed_decide_four_of_five_studies(distance, documents):
    rng = np.random.default_rng(0)
    found = {}
    needed = seeds_needed(distance, np.sqrt(2), documents)
    assert needed is not None
    for seeds in (needed, max(2, needed // 2)):
        first, second = rng.normal(size=(2, 4000, seeds))
        first = first + distance + rng.normal(size=(4000, 1)) * documents
        variance = (first.var(1, ddof=1) + second.var(1, ddof=1)) / seeds + documents**2
        seeds_part = 2 / seeds
        df = ((seeds_part + documents**2) / seeds_part) ** 2 * 2 * (seeds - 1)
        half = stats.t.isf(0.025, df) * np.sqrt(variance)
        found[seeds] = np.mean(first.mean(1) - second.mean(1) > half)
    assert 0.76 < found[needed] < 0.95
    assert found[max(2, needed // 2)] < found[needed]


def test_no_number_of_seeds_decides_what_the_documents_leave_open():
    assert seeds_needed(1.0, 1.0, over_documents=0.5) is None
    assert seeds_needed(1.0, 0.0) == 2


def test_holms_adjustment_leaves_out_what_is_unknown():
    assert holm([0.01, math.nan, 0.04, 0.02]) == pytest.approx(
        [0.03, math.nan, 0.04, 0.04], nan_ok=True
    )
    assert math.isnan(holm([math.nan])[0])


@few
@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holms_adjustment_rejects_what_the_steps_down_reject(p_values):
    adjusted = holm(p_values)
    for level in (0.01, 0.05, 0.3):
        steps = [p <= level / (len(p_values) - place) for place, p in enumerate(sorted(p_values))]
        rejected = steps.index(False) if False in steps else len(steps)
        assert sum(p <= level * (1 + 1e-12) for p in adjusted) == pytest.approx(
            rejected, abs=p_values.count(level)
        )


@pytest.mark.parametrize(
    ("best", "random", "words", "says"),
    [
        (70, 60, 50, 1),
        (70, 60, math.nan, 1),
        (70, 69.9, 50, 0),
        (70, 60, 69.9, 0),
        (70, None, 50, 0),
    ],
)
def test_a_task_counts_if_its_best_row_is_above_random_weights_and_words_alone(
    best, random, words, says
):
    rows = {"a": best, "b": best - 5} | ({} if random is None else {f"a{RANDOM}": random})
    of_rows = {
        row: [mean - place, mean, mean + place] for place, (row, mean) in enumerate(rows.items(), 1)
    }
    frame = toy_frame({"mnli": of_rows}, tasks={"mnli": "mnli", "mnli_f1": "mnli"}, words=words)
    assert counts(frame, "mnli") is bool(says)  # nan: of spans there are no words alone
    assert counts(frame, "mnli_f1") is bool(says)


def test_a_task_of_one_model_counts_by_its_examples():
    by_document = {"a": np.arange(10) % 2 * 2 + 8, f"a{RANDOM}": np.arange(10) % 3 + 5}
    kept = {(row, 0, "mnli"): (np.full(10, 10), right) for row, right in by_document.items()}
    values = {row: [float(right.sum())] for row, right in by_document.items()}
    for words, says in ((69, True), (89, False)):
        frame = toy_frame(
            {"mnli": values, "mlm_accuracy": values},
            documents=kept,
            tasks={"mnli": "mnli"},
            words=words,
        )
        assert (counts(frame, "mnli"), counts(frame, "mlm_accuracy")) == (says, True), (
            "held-out text always counts"
        )
