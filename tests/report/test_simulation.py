import numpy as np
import pytest
from scipy.stats import binom

from albert_lab.report import simulation
from albert_lab.report.simulation import EXAMPLE_NOISES, NOISES, false_difference, false_support, power

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


def test_the_text_has_every_simulation(monkeypatch):
    monkeypatch.setattr(simulation, "false_support", lambda *_: simulation.ErrorRates(1.0, 2.0))
    monkeypatch.setattr(simulation, "power", lambda *_: simulation.ErrorRates(3.0, 4.0))
    monkeypatch.setattr(simulation, "false_difference", lambda *_: simulation.ExampleRates(5.0, 6.0, 7.0))
    text = simulation.as_markdown(10)
    assert text.count("1.0 / 2.0") == 4 * len(NOISES)
    assert text.count("3.0 / 4.0") == 8
    assert all(name in text for name in (*NOISES, *EXAMPLE_NOISES))
