"""Coverage of the intervals of a trend, and its false verdicts, on simulated ladders.

The true effect is 1 at every rung, so the slope is 0, and any verdict on it is false. tau is the scatter between rungs,
up to the size of the effect. The noise of seeds has a standard deviation of 0.5 at the lowest rung.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from albert_lab.analysis import trend

DECADES = 1.6  # of compute from the lowest rung to the top, as in conf/ladder/size.yaml
TO_THE_PAPER = 7.0  # decades of compute above the top rung
SD = 0.5

Effects = Callable[[Sequence[Mapping[int, float]], Sequence[float]], tuple[trend.Effect, ...]]


def simulate(
    rungs: int, seeds: Sequence[int], tau: float, ladders: int, spread: float = 1.0, effects: Effects = trend.effects
) -> dict[str, float]:
    """The shares of simulated ladders in which intervals hold, and in which the slope is falsely decided.

    Args:
        rungs: the number of rungs.
        seeds: the number of seeds at each rung.
        tau: the standard deviation of the scatter between rungs.
        ladders: how many are simulated.
        spread: the noise of seeds at the top rung over that at the lowest.
        effects: how effects are estimated from differences by seed.
    """
    rng = np.random.Generator(np.random.Philox(key=[rungs, sum(seeds)]))
    x = np.linspace(0.0, DECADES, rungs)
    far = DECADES + TO_THE_PAPER
    sds = SD * np.geomspace(1.0, spread, rungs)
    held = dict.fromkeys(("slope", "paper", "next", "top", "false"), 0)
    for _ in range(ladders):
        true = 1.0 + tau * rng.normal(size=rungs + 2)
        drawn = [dict(enumerate(true[i] + sds[i] * rng.normal(size=seeds[i]))) for i in range(rungs)]
        measured = effects(drawn, list(10.0**x))
        fitted = trend.fit(measured)
        assert fitted is not None
        held["slope"] += fitted.slope.covers(0.0)
        held["false"] += fitted.direction() is not None
        held["paper"] += fitted.predict(far).covers(true[-1])
        held["next"] += fitted.predict(x[-1] + x[1]).covers(true[-2])
        if validation := trend.validate(measured):
            held["top"] += validation.holds
    return {name: count / ladders for name, count in held.items() if name != "top" or rungs > trend.FEWEST_RUNGS}


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
    for rungs in (3, 4, 5, 6):
        for first, last in ((3, 3), (8, 8), (8, 3)):
            seeds = [round(n) for n in np.geomspace(first, last, rungs)]
            for tau in (0.0, 0.1, 0.3, 1.0):
                held = simulate(rungs, seeds, tau, asked.ladders, asked.spread, effects)
                shown = " | ".join(f"{100 * held[name]:.1f}" if name in held else "-" for name in _SHOWN)
                print(f"| {rungs} | {first} to {last} | {tau:.1f} | {shown} |", flush=True)


_SHOWN = {
    "slope": "slope",
    "paper": "effect at the paper's compute",
    "next": "effect at the next rung",
    "top": "measured at the top, from lower rungs",
    "false": "false verdicts",
}

if __name__ == "__main__":
    main()
