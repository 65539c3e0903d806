from dataclasses import replace

import pytest
from toy import toy_overrides
from toy_ladder import NOT_SHARED, SHARED, growing, toy_ladder

from albert_lab.analysis.ladder import MLM, analyse
from albert_lab.analysis.ladder_plan import expected_slopes
from albert_lab.cost.rates import Rates
from albert_lab.studies import ladder
from albert_lab.studies.experiment import named
from albert_lab.studies.ladder_results import LadderResults

SMALL = SHARED | {"embedding_size": "H/4"}
ROWS = (SHARED, NOT_SHARED, SMALL)


def planned(corpus):
    """Five rungs of three rows; the lowest two lack E = H/4."""
    overrides = toy_overrides(corpus, "seed=0,1,2", "sharing=all-shared,not-shared", "embedding_size=H,H/4")
    rungs = ladder.plan_rungs(named("sharing"), ladder.read("size"), overrides, [])[:5]
    kept = [[item for item in rung.points if item.point.row in ROWS] for rung in rungs]
    return [
        replace(rung, plan=replace(rung.plan, points=tuple(points))) for rung, points in zip(rungs, kept, strict=True)
    ]


def noisy(rung, row, seed):
    """A difference of E with ten times the noise of that of sharing, and scatter between rungs."""
    return growing(rung, row, seed) + (0.01 * (seed - 1) * (-1) ** rung + 0.3 * (rung == 3)) * (row == SMALL)


def test_each_contrast_has_its_own_rungs_spread_and_scatter(corpus):
    results = toy_ladder(noisy, rows=ROWS)
    sharing, size = expected_slopes(planned(corpus), results, Rates("rtx4090"))
    assert (sharing.contrast.axis, sharing.rungs) == ("sharing", 5)
    assert (size.contrast.axis, size.rungs) == ("embedding_size", 3)
    for line, own in ((sharing, analyse(results).trends[0]), (size, analyse(results).trends[1])):
        assert own.measure.key == MLM
        assert own.trend is not None
        assert line.spread == pytest.approx(own.effects[0].error * 3**0.5)
        assert line.tau == own.trend.tau
    assert sharing.reach is not None
    assert size.reach is not None
    assert size.tau is not None
    assert size.tau > 0.05
    assert size.reach > 10 * sharing.reach
    assert "over 3 rungs" in str(size)


def test_without_finished_runs_an_interval_is_in_units_of_the_spread(corpus):
    nothing = LadderResults(toy_ladder(growing).file, {})
    sharing, size = expected_slopes(planned(corpus), nothing, Rates("rtx4090"))
    assert sharing.spread is sharing.tau is None
    assert "times the spread of the difference between seeds" in str(sharing)
    assert "no finished run has measured that spread yet" in str(size)


def test_a_contrast_of_two_rungs_has_no_slope(corpus):
    *_, size = expected_slopes(planned(corpus)[:4], toy_ladder(noisy, rows=ROWS), Rates("rtx4090"))
    assert size.reach is None
    assert str(size).endswith("none, a trend needs three rungs.")
