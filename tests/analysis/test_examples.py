from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from planted import claim, decide, experiment, row
from records import toy_column, toy_finetuning, toy_run

from albert_lab.analysis.decisions import Decision
from albert_lab.analysis.examples import ExampleScores, example_variance
from albert_lab.studies.table import Row

GREATER = claim("greater", row=row("128"), than=row("64"))

SEEDS = (0, 1, 2, 3)


def scores(drawn: np.ndarray, seeds=SEEDS, examples: str = "dev") -> ExampleScores:
    return ExampleScores(tuple(seeds), drawn, examples)


def crossed(rng, seeds: int = 4, examples: int = 300, of_seed=0.0, of_example=0.0, rest=0.0) -> np.ndarray:
    """Scores with these standard deviations. [seeds, examples]"""
    result = rng.normal(0, of_seed, (seeds, 1)) + rng.normal(0, of_example, (1, examples))
    return result + rng.normal(0, rest, (seeds, examples))


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


def example_table(shift: float, seeds: int = 5, n: int = 200, *, known: Callable[[str], bool] = lambda run: True):
    """Two rows that answer dev examples, each row in its own way, with a seed's noise far smaller than examples'.

    Runs record their examples if they are known.
    """
    rng = np.random.default_rng(3)
    rows = []
    for label, better in (("64", 0.0), ("128", shift)):
        own = rng.random(n) < 0.6 + better
        runs = []
        for seed in range(seeds):
            name = f"{label}-{seed}"
            right = [np.where(rng.random(n) < 0.02, ~own, own).astype(float) for _ in range(2)]
            tuned = [
                toy_finetuning(name, "sst2", 100 * item.mean(), seed=number, n=n, floor=0, examples=item.tolist())
                for number, item in enumerate(right)
            ]
            if not known(name):
                tuned = [item.model_copy(update={"example_scores": None}) for item in tuned]
            numbers = {"sst2": float(100 * np.mean(right))}
            runs.append(toy_run(name, seed, numbers, (toy_column("sst2", *tuned),)))
        rows.append(Row(row(label), row(label), runs, {}))
    return rows


def test_a_small_difference_within_the_noise_of_dev_examples_is_undecided():
    asked = experiment(GREATER | {"metric": "sst2"})
    known, alone = decide(asked, example_table(0.05))[0], decide(asked, example_table(0.05, known=lambda run: False))[0]
    assert known.interval is not None
    assert alone.interval is not None
    assert known.effect == alone.effect
    assert known.interval[1] - known.interval[0] > 3 * (alone.interval[1] - alone.interval[0])
    assert (known.decision, alone.decision) == ("undecided", "supported")
    assert decide(asked, example_table(0.3))[0].decision is Decision.SUPPORTED


def test_with_missing_examples_only_seeds_count():
    asked = experiment(GREATER | {"metric": "sst2"})
    alone = decide(asked, example_table(0.05, known=lambda run: False))[0]
    assert decide(asked, example_table(0.05, known=lambda run: run != "64-0"))[0] == alone


def test_rows_with_different_examples_are_not_compared():
    rows = example_table(0.3)
    for run in rows[0].runs[:1]:
        column = run.columns[0]
        dev = column.finetunings[0].dev.model_copy(update={"fingerprint": "others"})
        others = tuple(finetuning.model_copy(update={"dev": dev}) for finetuning in column.finetunings)
        rows[0].runs[0] = toy_run(run.name, run.seed, run.numbers, (replace(column, finetunings=others),))
    verdict = decide(experiment(GREATER | {"metric": "sst2"}), rows)[0]
    assert (verdict.decision, verdict.effect) == (Decision.UNDECIDED, None)
    assert verdict.reason == "its rows are scored on different sets in sst2"
