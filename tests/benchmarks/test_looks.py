import looks
import numpy as np
import pytest
from looks import LOOKS, UNPLANNED, Rates, false_decisions, power
from power import NOISES
from scipy.stats import binom

DRAWN = 40


def generator(key: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


@pytest.mark.parametrize("noise", ["spreads of 1 to 3", "exponential noise"])
def test_a_table_of_equal_rows_is_decided_at_any_planned_look_in_at_most_one_of_twenty(noise):
    found = false_decisions(noise, 8, DRAWN, generator())
    most = 100 * binom.ppf(0.999, DRAWN, 0.05) / DRAWN
    assert found["pocock"].ever <= most
    assert found["obrien-fleming"].ever <= most
    assert found[UNPLANNED].ever >= found["pocock"].ever


def test_pococks_function_decides_large_effects_at_the_first_look_and_saves_their_seeds():
    found, single = power(6.0, 8, DRAWN, generator())
    assert found["pocock"].first > 80
    assert found["pocock"].first > found["obrien-fleming"].first + 20
    assert found["pocock"].ever == single[8].ever == 100
    assert found["pocock"].seeds < 3.6


def test_looks_cost_little_power_next_to_a_single_look_at_all_seeds():
    found, single = power(2.0, 8, DRAWN, generator())
    assert single[5].ever < found["pocock"].ever <= found["obrien-fleming"].ever <= single[8].ever


def test_the_text_has_every_simulation(monkeypatch):
    rates = dict.fromkeys((*looks.SPENDING, UNPLANNED), Rates(1.0, 2.0, 3.0))
    monkeypatch.setattr(looks, "false_decisions", lambda *_: rates)
    monkeypatch.setattr(looks, "power", lambda *_: (rates, dict.fromkeys(LOOKS, Rates(4.0, 5.0, 6.0))))
    text = looks.as_markdown(10)
    assert "0.0249 / 0.0164 / 0.0189" in text
    assert all(noise in text for noise in NOISES)
    assert text.count(" 2.0 ") == 3 * 2 * len(NOISES)
