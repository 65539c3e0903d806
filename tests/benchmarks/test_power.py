import numpy as np
import pytest
from power import EXAMPLE_NOISES, NOISES, false_difference, false_support, multi_bootstrap, power
from scipy.stats import binom

from albert_lab.analysis.examples import ExampleScores

TABLES = 120


def generator(key: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


def most(rate: float, tables: int) -> float:
    """The share, in percent, that chance exceeds once in a thousand where the true rate is this one."""
    return 100 * float(binom.ppf(0.999, tables, rate)) / tables


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("noise", NOISES)
def test_at_most_one_table_in_twenty_supports_a_claim_on_equal_rows(noise, seeds):
    found = false_support(noise, seeds, 8, TABLES, generator(seeds))
    assert found.pooled <= most(0.05, TABLES)


@pytest.mark.parametrize(("seeds", "effect", "least"), [(3, 4.0, 60), (5, 2.0, 35), (5, 4.0, 95)])
def test_the_pooled_spread_has_more_power_than_paired_tests(seeds, effect, least):
    found = power(effect, seeds, 6, TABLES, generator())
    assert found.pooled > least
    assert found.pooled > found.paired + 5


@pytest.mark.parametrize("seeds", [3, 10])
def test_rows_of_equal_accuracy_differ_at_five_percent_over_seeds_and_examples(seeds):
    tables = 150
    for place, noise in enumerate(EXAMPLE_NOISES):
        assert false_difference(noise, seeds, tables, generator(place), resamples=2).both <= most(0.05, tables)


def test_tests_by_seeds_only_and_the_bootstrap_with_few_seeds_find_false_differences():
    found = false_difference("examples that rows find hard", 10, 150, generator(), resamples=2)
    assert found.seeds_alone > found.both + 5
    assert false_difference("seeds that differ", 3, 100, generator(), resamples=200).multi_bootstrap > most(0.05, 100)


def test_the_multi_bootstrap_draws_shared_seeds_and_examples_together():
    scores = generator(4).normal(0, 1, (4, 300))
    row = ExampleScores((0, 1, 2, 3), scores, "dev")
    other = ExampleScores((5, 6, 7, 8), scores, "dev")
    assert multi_bootstrap([row, row], [1, -1], generator()) == pytest.approx((0.0, 0.0), abs=1e-12)
    low, high = multi_bootstrap([row, other], [1, -1], generator())
    assert low < -0.01 < 0.01 < high
