import numpy as np
import pytest

from albert_lab.analysis.examples import ExampleScores, example_variance

SEEDS = (0, 1, 2, 3)


def scores(drawn: np.ndarray, seeds=SEEDS, examples: str = "dev") -> ExampleScores:
    return ExampleScores(tuple(seeds), drawn, examples)


def crossed(rng, seeds: int = 4, examples: int = 300, of_seed=0.0, of_example=0.0, rest=0.0) -> np.ndarray:
    """Scores with these standard deviations. [seeds, examples]"""
    found = rng.normal(0, of_seed, (seeds, 1)) + rng.normal(0, of_example, (1, examples))
    return found + rng.normal(0, rest, (seeds, examples))


def test_variance_of_examples_is_separated_from_that_of_single_answers():
    rng = np.random.default_rng(0)
    drawn = [example_variance([scores(crossed(rng, of_seed=1.0, of_example=0.5, rest=1.0))], [1.0]) for _ in range(200)]
    assert np.mean([variance for variance, _ in drawn]) == pytest.approx(0.25 / 300, rel=0.05)
    assert {df for _, df in drawn} == {299}


def test_random_answers_add_no_variance():
    rng = np.random.default_rng(1)
    drawn = [example_variance([scores(crossed(rng, rest=1.0))], [1.0])[0] for _ in range(200)]
    assert 0 <= np.mean(drawn) < 0.1 * 1.0 / 300


def test_difficulty_common_to_all_rows_cancels_in_their_difference():
    rng = np.random.default_rng(2)
    hard = rng.normal(0, 5, (1, 300))
    a, b = (scores(hard + crossed(rng, rest=0.1)) for _ in range(2))
    paired, _ = example_variance([a, b], [1, -1])
    other = scores(b.scores, examples="other")
    unpaired, _ = example_variance([a, other], [1, -1])
    assert paired < 1e-4
    assert unpaired == pytest.approx(2 * hard.var() / 300, rel=0.05)
