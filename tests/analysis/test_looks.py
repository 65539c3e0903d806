import math
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from planted import EMBEDDING_SIZES, claim, experiment, noisy, row, table
from scipy.stats import binom, norm

from albert_lab.analysis.looks import chance_to_exceed, level_at, levels
from albert_lab.analysis.table_scores import TableScores
from albert_lab.analysis.verdicts import Decision, decide
from albert_lab.studies.seed_plan import SeedPlan

PLAN = (3, 5, 8)
LABELS = EMBEDDING_SIZES[:3]
SPENDING = ("pocock", "obrien-fleming")


def generator(key: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


def test_bounds_are_those_of_the_literature():
    # Of z at five equal looks, as R's package ldbounds prints them for Lan and DeMets' function.
    printed = (2.4380, 2.4268, 2.4101, 2.3966, 2.3859)
    results = [norm.isf(level / 2) for level in levels((1, 2, 3, 4, 5), "pocock", 0.05)]
    assert results == pytest.approx(printed, abs=2e-3)


def test_obrien_and_flemings_function_leaves_little_for_the_first_look_and_most_for_the_last():
    assert levels(PLAN, "obrien-fleming", 0.05) == pytest.approx((0.00137, 0.01264, 0.04493), abs=2e-5)


def test_a_single_look_has_the_whole_level():
    assert levels((8,), "pocock", 0.05, 4) == pytest.approx((0.05,))


@pytest.mark.parametrize("spending", SPENDING)
def test_all_looks_together_reject_a_true_hypothesis_at_the_level(spending):
    draws = 200_000
    sums = generator().normal(size=(draws, PLAN[-1])).cumsum(axis=1)
    z = np.abs(sums[:, [n - 1 for n in PLAN]] / np.sqrt(PLAN))
    bounds = [norm.isf(level / 2) for level in levels(PLAN, spending, 0.05)]
    assert (z > bounds).any(axis=1).mean() == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("spending", SPENDING)
def test_levels_of_many_claims_stay_below_those_that_holm_needs_for_fewer(spending):
    of_claims = [levels(PLAN, spending, 0.05, claims) for claims in (1, 2, 4, 8, 16)]
    for fewer, more in pairwise(of_claims):
        assert sum(more) < sum(fewer)
        assert more[0] <= fewer[0] + 1e-9


def _chance(distance: float, n: int, *, error: float = 1.0, fixed: float = 0.0) -> float:
    return chance_to_exceed(distance, error, 1e6, fixed, n, 8, 0.05)


def test_the_chance_of_a_decision_is_that_of_drawn_seeds_to_come():
    n, last, value = 3, 8, 1.5
    rng = generator()
    true = value + rng.normal(size=100_000)  # in standard errors of the mean of n seeds
    to_come = true + rng.normal(size=true.size) * math.sqrt(n / (last - n))
    at_last = (n * value + (last - n) * to_come) / last
    decided = (at_last > norm.isf(0.025) * math.sqrt(n / last)).mean()
    assert _chance(value, n) == pytest.approx(decided, abs=0.005)


def test_no_seeds_to_come_change_nothing():
    assert _chance(1.0, 8) == 0.0


def test_noise_that_seeds_do_not_reduce_leaves_the_decision_as_it_is():
    assert _chance(1.0, 3, fixed=1.0) == 0.0
    assert _chance(3.0, 3, fixed=1.0) == 1.0
    assert _chance(1.9, 3, fixed=0.9) < _chance(1.9, 3)


def test_between_two_looks_the_lower_level_counts():
    looks, steps = (3, 5, 8), (0.025, 0.019, 0.023)
    assert [level_at(looks, steps, seeds) for seeds in range(2, 10)] == [
        0.025,
        0.025,
        0.019,
        0.019,
        0.019,
        0.019,
        0.023,
        0.023,
    ]


def test_tables_of_equal_rows_are_decided_at_any_look_in_at_most_one_of_twenty():
    """Whole verdicts: three claims of three rows, corrected by Holm, and looked at after 3, 5 and 8 seeds."""
    tables, rng = 200, generator()
    asked = experiment(
        *(claim("greater", row=row(better), than=row(worse)) for better, worse in combinations(LABELS, 2))
    )
    plan = SeedPlan(seeds=tuple(range(PLAN[-1])), looks=PLAN)
    equal: dict[str, float] = dict.fromkeys(LABELS, 60.0)
    wrong = 0
    for _ in range(tables):
        drawn = noisy(rng, equal, PLAN[-1])
        looked = (table({label: values[:n] for label, values in drawn.items()}) for n in PLAN)
        wrong += any(
            verdict.decision is not Decision.UNDECIDED
            for rows in looked
            for verdict in decide(asked, TableScores(rows), plan)
        )
    assert 0 < wrong <= binom.ppf(0.95, tables, 0.05)


def test_claims_over_rounds_and_over_seeds_have_one_level():
    ratio = claim("ratio", row=row("128"), to=row("64"), low=1) | {"metric": "tokens_per_second"}
    asked = experiment(claim("greater", row=row("128"), than=row("64")), ratio)
    values = {"64": [60.0, 61.0, 62.0], "128": [60.1, 61.0, 62.1]}
    sides = {"64": (100.0, 101.0, 99.0, 100.0), "128": (110.0, 110.5, 109.0, 109.5)}
    rows = [replace(item, rounds={"tokens_per_second": sides[item.labels["embedding_size"]]}) for item in table(values)]
    plan = SeedPlan(seeds=tuple(range(PLAN[-1])), looks=PLAN)
    over_seeds, over_rounds = decide(asked, TableScores(rows), plan)
    assert (over_seeds.n_of, over_rounds.n_of) == ("seed", "round")
    assert over_rounds.level == over_seeds.level == levels(PLAN, "pocock", 0.05, 2)[0]
    (alone,) = decide(experiment(ratio), TableScores(rows), plan)
    assert alone.level == 0.05
