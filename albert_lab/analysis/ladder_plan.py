"""The interval that the slope of each contrast of a planned ladder can be expected to have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from albert_lab.analysis.ladder import MLM, Contrast, ContrastTrend, analyse, contrasts
from albert_lab.analysis.trend import expected_reach
from albert_lab.cost.rates import Rates
from albert_lab.studies.ladder import PlannedRung
from albert_lab.studies.ladder_results import LadderResults
from albert_lab.studies.plan import PlannedPoint
from albert_lab.studies.prices import price


@dataclass(frozen=True)
class ExpectedSlope:
    """The expected interval of a slope of MLM likelihood.

    Attributes:
        rungs: how many have both rows.
        reach: its half width per tenfold compute, in nats per token, or in units of the spread if this is not known;
            None with fewer than three rungs.
        spread: the standard deviation of the difference over seeds in finished runs; None if it is not known.
        tau: that of the scatter between rungs; None if no trend of finished runs has measured it.
    """

    contrast: Contrast
    rungs: int
    reach: float | None
    spread: float | None
    tau: float | None

    def __str__(self) -> str:
        start = f"Expected interval of the slope of {self.contrast.words}"
        if self.reach is None:
            return f"{start}: none, a trend needs three rungs."
        if self.spread is None:
            return (
                f"{start} over {self.rungs} rungs: ± {self.reach:.1f} times the spread of the difference between seeds"
                " per tenfold compute, without scatter between rungs; no finished run has measured that spread yet."
            )
        scatter = "without scatter" if self.tau is None else f"a scatter of {self.tau:.4f}"
        return (
            f"{start} over {self.rungs} rungs: ± {self.reach:.4f} nats per token of MLM per tenfold compute, with the"
            f" measured spread of {self.spread:.4f} between seeds and {scatter} between rungs."
        )


def expected_slopes(rungs: Sequence[PlannedRung], finished: LadderResults, known: Rates) -> list[ExpectedSlope]:
    """A line for each row against the first one of its axis, each with its own rungs.

    Args:
        finished: runs of the same ladder, which measure spread and scatter.
    """
    lines = analyse(finished).trends if finished.runs else ()
    measured = {_key(line.contrast): line for line in lines if line.measure.key == MLM}
    rows = list({tuple(item.point.row.items()): item.point.row for rung in rungs for item in rung.points}.values())
    return [
        _expected(contrast, rungs, measured.get(_key(contrast)), known)
        for contrast in contrasts(rows)
        if contrast.second[contrast.axis] == rows[0][contrast.axis]
    ]


def _expected(
    contrast: Contrast, rungs: Sequence[PlannedRung], line: ContrastTrend | None, known: Rates
) -> ExpectedSlope:
    pairs = [pair for rung in rungs if (pair := _points(contrast, rung))]
    places = [math.log10(fmean(price(item, known).flops for item in pair)) for pair in pairs]
    spread = line.effects[0].error * math.sqrt(line.effects[0].n) if line else 0.0
    tau = line.trend.tau if line and line.trend else None
    seeds = [len(pair) // 2 for pair in pairs]
    reach = expected_reach(places, seeds, spread or 1.0, tau or 0.0 if spread else 0.0)
    return ExpectedSlope(contrast, len(pairs), reach, spread or None, tau)


def _points(contrast: Contrast, rung: PlannedRung) -> list[PlannedPoint]:
    """The points of both rows of a contrast at a rung; none if one of them has none."""
    first, second = (
        [item for item in rung.points if item.point.row == row] for row in (contrast.first, contrast.second)
    )
    return [*first, *second] if first and second else []


def _key(contrast: Contrast) -> tuple[frozenset[tuple[str, str]], ...]:
    return frozenset(contrast.first.items()), frozenset(contrast.second.items())
