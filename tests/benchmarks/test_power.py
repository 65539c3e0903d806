import numpy as np
import pytest
from power import multi_bootstrap

from albert_lab.analysis.examples import ExampleScores


def generator(key: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


def test_the_multi_bootstrap_draws_shared_seeds_and_examples_together():
    scores = generator(4).normal(0, 1, (4, 300))
    row = ExampleScores((0, 1, 2, 3), scores, "dev")
    other = ExampleScores((5, 6, 7, 8), scores, "dev")
    assert multi_bootstrap([row, row], [1, -1], generator()) == pytest.approx((0.0, 0.0), abs=1e-12)
    low, high = multi_bootstrap([row, other], [1, -1], generator())
    assert low < -0.01 < 0.01 < high
