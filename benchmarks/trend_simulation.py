"""Coverage of the intervals of a trend, and the share of its wrong verdicts, on simulated ladders.

The true effect is 1 in the middle of the ladder. Its slope is 0, where any verdict on it is false, or one of four
others, where a verdict is wrong if it is not the true direction. tau is the scatter between rungs, up to the size of
the effect. The noise of seeds has a standard deviation of 0.5 at the lowest rung.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from albert_lab.analysis import trend
from albert_lab.analysis.trend import Direction, Interval, Trend

DECADES = 2.4  # of compute from the lowest rung to the top, as in conf/ladder/size.yaml
TO_THE_PAPER = 5.8  # decades of compute above the top rung
SD = 0.5
SLOPES = (0.2, 0.6)  # a decade, up and down; with more, the true effect would change its sign within the ladder

Effects = Callable[[Sequence[Mapping[int, float]], Sequence[float]], tuple[trend.Effect, ...]]


def simulate(
    rungs: int, seeds: Sequence[int], tau: float, ladders: int, spread: float = 1.0, effects: Effects = trend.effects
) -> dict[str, float]:
    """The shares of simulated ladders in which intervals hold, and in which directions are false, wrong or found.

    Args:
        rungs: the number of rungs.
        seeds: the number of seeds at each rung.
        tau: the standard deviation of the scatter between rungs.
        ladders: how many are simulated.
        spread: the noise of seeds at the top rung over that at the lowest.
        effects: how effects are estimated from differences by seed.
    """
    rng = np.random.Generator(np.random.Philox(key=[1000 * rungs + sum(seeds), round(1000 * tau)]))
    x = np.linspace(0.0, DECADES, rungs)
    far = DECADES + TO_THE_PAPER
    sds = SD * np.geomspace(1.0, spread, rungs)
    held = dict.fromkeys(_SHOWN, 0.0)
    for _ in range(ladders):
        true = 1.0 + tau * rng.normal(size=rungs + 2)
        drawn = [dict(enumerate(true[i] + sds[i] * rng.normal(size=seeds[i]))) for i in range(rungs)]
        measured = effects(drawn, list(10.0**x))
        fitted = trend.fit(measured)
        assert fitted is not None
        held["slope"] += fitted.slope.covers(0.0)
        held["paper"] += fitted.predict(far).covers(true[-1])
        held["next"] += fitted.predict(x[-1] + x[1]).covers(true[-2])
        if validation := trend.validate(measured):
            held["top"] += validation.holds
        held["false"] += fitted.direction() is not None
        for size in SLOPES:
            for slope, true_ones in ((size, ("grows", "rises")), (-size, ("shrinks", "falls"))):
                if direction := direction_with(fitted, slope):
                    held[f"found {size}" if direction in true_ones else f"wrong {size}"] += 0.5
    return {name: count / ladders for name, count in held.items() if name != "top" or rungs > trend.FEWEST_RUNGS}


def direction_with(fitted: Trend, slope: float) -> Direction | None:
    """The direction of the same effects with a true slope around their middle.

    It moves the line by just as much and no interval in width, so intervals hold as often with any true slope.
    """
    own = fitted.slope
    moved = Interval(own.value + slope, own.low + slope, own.high + slope)
    return replace(fitted, slope=moved).direction(0.0 if moved.sign else 1.0)


def own_errors(differences: Sequence[Mapping[int, float]], flops: Sequence[float]) -> tuple[trend.Effect, ...]:
    """Effects whose error is from the seeds of their rung alone: what trend.effects() does not do, and why."""
    return tuple(trend.effects([by_seed], [compute])[0] for by_seed, compute in zip(differences, flops, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ladders", type=int, default=2000, help="simulated ladders a line")
    parser.add_argument("--spread", type=float, default=1.0, help="noise at the top rung over that at the lowest")
    parser.add_argument("--own-errors", action="store_true", help="do not pool the spread over the rungs")
    asked = parser.parse_args()
    effects = own_errors if asked.own_errors else trend.effects
    print(f"| rungs | seeds | tau | {' | '.join(_SHOWN.values())} |\n|{'---|' * (3 + len(_SHOWN))}")
    rows = []
    for rungs in (3, 4, 5, 6):
        for first, last in ((3, 3), (8, 8), (8, 3)):
            seeds = [round(n) for n in np.geomspace(first, last, rungs)]
            for tau in (0.0, 0.1, 0.3, 1.0):
                rows.append(simulate(rungs, seeds, tau, asked.ladders, asked.spread, effects))
                shown = str(first) if first == last else f"{first} to {last}"
                print(f"| {rungs} | {shown} | {tau:.1f} | {_cells(rows[-1])} |", flush=True)
    print(f"| mean | | | {_cells({name: fmean(row[name] for row in rows if name in row) for name in _SHOWN})} |")


def _cells(row: Mapping[str, float]) -> str:
    return " | ".join(f"{100 * row[name]:.1f}" if name in row else "-" for name in _SHOWN)


_SHOWN = {
    "slope": "slope",
    "paper": "paper",
    "next": "next",
    "top": "top",
    "false": "false",
    **{f"{name} {size}": f"{name}, ±{size}" for name in ("wrong", "found") for size in SLOPES},
}

if __name__ == "__main__":
    main()
