"""The cost of a ladder before it is climbed, and the part of it that fits into some hours."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from albert_lab.cost import parameters
from albert_lab.cost.estimate import duration
from albert_lab.cost.listing import Listing
from albert_lab.studies import dry_run
from albert_lab.studies.ladder import PlannedRung, in_order, looks_of
from albert_lab.studies.planning import PlannedPoint
from albert_lab.studies.rates import Rates


def flops_of(points: Sequence[PlannedPoint], known: Rates) -> float:
    """The mean training FLOPs of some runs."""
    return fmean(dry_run.price(item, known).flops for item in points)


def seconds_of(points: Sequence[PlannedPoint], known: Rates) -> float:
    """Seconds of the trainings and fine-tunings that some points lack, one after another."""
    training = sum(dry_run.price(item, known).seconds for item in points if item.lacks_pretraining)
    return training + sum(dry_run.finetuning_seconds(points, known).values())


def costs(rungs: Sequence[PlannedRung], known: Rates) -> Listing:
    """A line per rung: its runs, their sizes and FLOPs, and the time of those that are to be made."""
    rows = []
    total = 0.0
    for rung in rungs:
        sizes = sorted(parameters.count_parameters(item.point.config).total for item in rung.points)
        finished = sum(not item.lacks_pretraining for item in rung.points)
        seconds = seconds_of(rung.points, known)
        total += seconds
        rows.append(
            {
                "rung": rung.name,
                "rows": len(rung.of_seed(rung.seeds[0])),
                "seeds": len(rung.seeds),
                "runs": len(rung.points),
                "finished": finished,
                "parameters": f"{sizes[0]:,}" + (f" to {sizes[-1]:,}" if sizes[-1] > sizes[0] else ""),
                "budget": f"{rung.points[0].point.config.budget.value:,.0f} {rung.points[0].point.config.budget.unit}",
                "FLOPs of a run": f"{flops_of(rung.points, known):.1e}",
                "time": duration(seconds),
            }
        )
    notes = [
        f"To make: {duration(total)}, one run after another. Evaluation and the preparation of text are not included.",
        f"Time: {known.source(item.point.config for rung in rungs for item in rung.points)}.",
        f"Order: all rungs from the lowest up, with {', then '.join(map(str, looks_of(rungs)))} seeds.",
    ]
    return Listing(rows, notes)


def within(rungs: Sequence[PlannedRung], hours: float, jobs: int, known: Rates) -> list[PlannedRung]:
    """The rungs with the seeds that fit into some hours, in the order of ladder.in_order(); finished ones cost nothing.

    Args:
        rungs: all rungs.
        hours: the time.
        jobs: how many runs are made at a time, each as fast as one alone.
        known: the speeds.
    """
    left = hours * 3600 * jobs
    chosen: dict[str, list[int]] = {rung.name: [] for rung in rungs}
    for rung, seed in in_order(rungs):
        needed = seconds_of(rung.of_seed(seed), known)
        if needed <= left:
            left -= needed
            chosen[rung.name].append(seed)
    kept = (
        replace(rung, points=tuple(item for item in rung.points if item.point.config.seed in chosen[rung.name]))
        for rung in rungs
    )
    return [rung for rung in kept if rung.points]
