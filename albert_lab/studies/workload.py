"""The work of a run in FLOPs: the rest of its pre-training, and its missing fine-tunings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from albert_lab.cost import parameters
from albert_lab.cost.estimate import price
from albert_lab.runs import finetunings, states
from albert_lab.runs.run import Run
from albert_lab.studies.points import Point

# FLOP/s that convert a budget in seconds into FLOPs where only proportions matter.
ASSUMED_SPEED = 2e10


@dataclass(frozen=True)
class Work:
    """FLOPs of a run: of its whole budget, of the part not made by its trunk (0 if done), and of its fine-tunings."""

    budget: float
    pretraining: float
    finetuning: float

    @property
    def total(self) -> float:
        """FLOPs that are still to be computed."""
        return self.pretraining + self.finetuning


def of(run: Run, point: Point, tasks: Iterable[str], seeds: finetunings.Seeds) -> Work:
    """The work of a run with its fine-tunings; a stopped run counts in full."""
    budget = price(run.config, ASSUMED_SPEED).flops
    own = 0.0 if states.state(run.folder) in states.PRETRAINED else budget * own_share(point)
    return Work(budget, own, sum(finetuning_flops(run, tasks, seeds).values()))


def own_share(point: Point) -> float:
    """The share of the budget that a point's own run computes: the trunk's part is not repeated."""
    start, budget = point.start, point.config.budget
    if start is None or start.keep != "training":
        return budget.stop_at
    return budget.stop_at - start.point.config.budget.stop_at


def finetuning_flops(run: Run, tasks: Iterable[str], seeds: finetunings.Seeds) -> dict[tuple[str, int], float]:
    """FLOPs of each fine-tuning that is not done, by task and seed, at the full length of every example."""
    found = {}
    flops = parameters.count_flops(run.config)
    for task, seed in finetunings.missing(run, tasks, seeds):
        settings = task.fitted(run.config)
        # A multiple-choice example is a sequence for each option.
        sequences = settings.batch_size * task.format.sequences
        trained = settings.steps * sequences * settings.max_sequence_length
        evaluated = settings.steps // settings.checkpoint_steps * (settings.dev_examples or 0)
        tokens = evaluated * settings.max_sequence_length
        found[task.name, seed] = trained * flops.training + tokens * flops.inference
    return found


def places(works: Sequence[Work], jobs: int) -> list[str]:
    """The place of each process in a study, as NUMBER/COUNT:FINETUNING:LATER.

    Both kinds of work are in units of the run's whole budget, whose seconds its process measures; later work is
    divided by the number of jobs.
    """
    after = [sum(work.total for work in works[number:]) / jobs for number in range(1, len(works) + 1)]
    return [
        f"{number}/{len(works)}:{work.finetuning / work.budget:.4g}:{later / work.budget:.4g}"
        for number, (work, later) in enumerate(zip(works, after, strict=True), 1)
    ]
