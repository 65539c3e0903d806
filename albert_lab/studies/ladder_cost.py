"""The cost of a ladder before it is climbed, and the part of it that fits into some hours."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from albert_lab.cost import counts
from albert_lab.cost.listing import Listing
from albert_lab.cost.rates import Rates
from albert_lab.errors import ConfigError
from albert_lab.studies.ladder import PlannedRung, by_looks
from albert_lab.studies.plan import PlannedPoint
from albert_lab.studies.prices import cost_of, price
from albert_lab.units import Seconds, duration


def flops_of(points: Sequence[PlannedPoint], known: Rates) -> float:
    return fmean(price(item, known).flops for item in points)


def costs(rungs: Sequence[PlannedRung], looks: Sequence[int], known: Rates) -> Listing:
    """A line per rung: its runs, their sizes and FLOPs, and the time of those that are to be trained.

    Args:
        looks: the numbers of seeds at which the whole ladder is judged.
    """
    rows = []
    total = 0.0
    for rung in rungs:
        sizes = sorted(counts.count_parameters(item.point.config).total for item in rung.points)
        finished = sum(not item.lacks_pretraining for item in rung.points)
        seconds = cost_of(rung.points, known).all_seconds
        total += seconds
        rows.append(
            {
                "rung": rung.name,
                "rows": len(rung.of_seed(rung.seeds[0])),
                "seeds": len(rung.seeds),
                "runs": len(rung.points),
                "finished": finished,
                "parameters": f"{sizes[0]:,}" + (f" to {sizes[-1]:,}" if sizes[-1] > sizes[0] else ""),
                "budget": f"{rung.plan.config.budget.value:,.0f} {rung.plan.config.budget.unit}",
                "FLOPs of a run": f"{flops_of(rung.points, known):.1e}",
                "time": Seconds(seconds),
            }
        )
    notes = [
        f"To train: {duration(total)}, one run after another with nothing beside it. Evaluation (on a CPU, 6 to 23 %"
        " more) and the preparation of text are not included.",
        f"Time: {known.source(item.point.config for rung in rungs for item in rung.points)}.",
        f"Order: all rungs from the lowest up, with {', then '.join(map(str, looks))} seed{'s' * (looks[-1] > 1)}.",
    ]
    return Listing(rows, notes)


def within(rungs: Sequence[PlannedRung], hours: float, jobs: int, known: Rates) -> list[PlannedRung]:
    """The rungs with the seeds that fit into some hours, in the order of ladder.by_looks(); finished ones cost nothing.

    A rung has all seeds of a look or none of them: a rung with fewer than those of the first decides nothing.

    Args:
        jobs: how many runs are trained at a time, each as fast as one alone.

    Raises:
        ConfigError: not even the first look of one rung fits into hours above 0.
    """
    left = hours * 3600 * jobs
    chosen: dict[str, tuple[PlannedPoint, ...]] = {rung.name: () for rung in rungs}
    left_out: set[str] = set()
    for rung, seeds in by_looks(rungs):
        points = sum(map(rung.of_seed, seeds), ())
        needed = cost_of(points, known).all_seconds
        if needed > left:
            left_out.add(rung.name)
        if rung.name not in left_out:
            left -= needed
            chosen[rung.name] += points
    if hours and not any(chosen.values()):
        lowest, seeds = next(by_looks(rungs))
        needed = cost_of(sum(map(lowest.of_seed, seeds), ()), known).all_seconds
        raise ConfigError(
            f"--hours {hours:g}: too few for the {len(seeds)} seeds of the first look at the lowest rung,"
            f" {lowest.name}, which take {duration(needed / jobs)}"
        )
    kept = (replace(rung, plan=replace(rung.plan, points=chosen[rung.name])) for rung in rungs)
    return [rung for rung in kept if rung.points]
