"""The whole paper: every experiment file that comes with the package, planned together and priced at every scale."""

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from albert_lab import paths
from albert_lab.config.compose import axes, load
from albert_lab.cost.estimate import duration
from albert_lab.cost.listing import Listing
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import Say
from albert_lab.studies import dry_run, planning, rates
from albert_lab.studies.experiment import Experiment, files, named
from albert_lab.studies.planning import PlannedPoint
from albert_lab.studies.rates import Rates
from albert_lab.studies.seed_plan import SeedPlan


@dataclass(frozen=True)
class PaperStudy:
    """One experiment of the paper with its points, and the plan of its seeds."""

    experiment: Experiment
    planned: list[PlannedPoint]
    seed_plan: SeedPlan

    def at_look(self, most: int | None) -> list[PlannedPoint]:
        """The points of so many looks; None: of all."""
        return planning.at_look(self.planned, self.seed_plan, self.seed_plan.last(most))


def experiments() -> list[Experiment]:
    """Every packaged experiment in the paper's order: tables first, then experiments with only a figure."""
    return sorted((named(file.stem) for file in files()), key=_place)


def _place(experiment: Experiment) -> tuple[bool, int]:
    table = re.search(r"Tables? (\d+)", experiment.source)
    figure = re.search(r"Figure (\d+)", experiment.source)
    number = table or figure
    return table is None, int(number.group(1)) if number else 0


def plan(overrides: Sequence[str], tasks: Sequence[str] | None = None) -> list[PaperStudy]:
    """Every experiment of the paper with its runs and fine-tunings; writes nothing.

    Args:
        overrides: `key=value` texts that win over every experiment.
        tasks: names of the downstream tasks; None: those that fill each experiment's columns.

    Raises:
        ConfigError: an override that an experiment cannot take; names the experiment.
        MissingDataError: text, or the data of a task given by its name, is missing.
    """
    found = []
    for experiment in experiments():
        try:
            planned = planning.plan(experiment, overrides, tasks)
        except (ConfigError, MissingDataError) as error:
            raise type(error)(f"{experiment.name}: {error}") from error
        found.append(PaperStudy(experiment, planned, planning.seed_plan(planned, overrides)))
    return found


def scales() -> list[str]:
    """The scales, smallest first, by the steps of one run times its sequences."""
    names = [file.stem for file in paths.CONF.glob("scale/*.yaml")]
    return sorted(names, key=lambda name: (config := load([f"scale={name}"])).scale.budget.steps * config.batch_size)


def costs(
    overrides: Sequence[str], tasks: Sequence[str] | None, say: Say, on: str | None = None, looks: int | None = None
) -> Listing:
    """The cost of the paper: each experiment at the chosen scale, then the total at every scale; writes nothing.

    Args:
        overrides: see plan().
        tasks: see plan().
        say: receives the scale that is planned.
        on: the device (see dry_run.costs).
        looks: the number of looks that are priced; None: all.

    Raises: see plan().
    """
    chosen = plan(overrides, tasks)
    known = rates.choose(on, chosen[0].planned[0].point.config)
    name = chosen[0].planned[0].point.config.scale.name
    made: dict[str, TotalCost] = {}
    seen: set[str] = set()
    for study in chosen:
        made[study.experiment.name] = cost_of(study.at_look(looks), seen, known)
    totals = {name: sum(made.values(), TotalCost())}
    # A seed does not change the price: one is priced for all, since composing configurations takes time.
    seeds = axes(overrides).get("seed")
    rest = [text for text in overrides if text.split("=")[0] not in ("scale", "seed")]
    for scale in scales():
        if scale != name:
            say(f"planning scale={scale}")
            seen = set()
            found = plan([*rest, f"scale={scale}", "seed=0"], tasks)
            of_scale = found[0].planned[0].point.config.scale.looks
            number = len(seeds) if seeds else of_scale[min(looks or len(of_scale), len(of_scale)) - 1]
            totals[scale] = sum((cost_of(study.planned, seen, known) for study in found), TotalCost()).times(number)
    source = known.source(item.point.config for study in chosen for item in study.planned)
    rows = [{"scale": name, "experiment": key} | cost.as_row() for key, cost in made.items()]
    rows += [{"scale": scale, "experiment": "all of them"} | totals[scale].as_row() for scale in scales()]
    notes = [
        "Runs of a row above are not counted again; shared ones are made once, in the first row. Finished runs cost"
        " nothing: time and disk are those of the runs to make.",
        f"Time, at scale={name}: {source}; one run after another, fine-tuning at the full length of every example.",
        "Evaluation and the preparation of text are not included; disk is that of checkpoints.",
        *chosen[0].seed_plan.notes(looks),
    ]
    return Listing(rows, notes)


@dataclass(frozen=True)
class TotalCost:
    """The cost of runs and fine-tunings that are not finished."""

    runs: int = 0
    shared: int = 0
    finished: int = 0
    finetunings: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    finetuning_seconds: float = 0.0
    disk_bytes: int = 0

    def __add__(self, other: "TotalCost") -> "TotalCost":
        """The sum of two costs."""
        return TotalCost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def times(self, factor: int) -> "TotalCost":
        """The cost multiplied by a factor."""
        return TotalCost(*(factor * value for value in astuple(self)))

    def as_row(self) -> dict[str, Any]:
        """The cost as a line of a listing."""
        return {
            "runs": self.runs,
            "shared": self.shared,
            "finished": self.finished,
            "FLOPs": f"{self.flops:.1e}",
            "training time": duration(self.seconds),
            "fine-tunings": self.finetunings,
            "fine-tuning time": duration(self.finetuning_seconds),
            "time in all": duration(self.seconds + self.finetuning_seconds),
            "disk MiB": self.disk_bytes / 2**20,
        }


def cost_of(planned: Sequence[PlannedPoint], seen: set[str], known: Rates) -> TotalCost:
    """The cost of the runs and fine-tunings of a table that are not in seen; adds them to seen."""
    cost = TotalCost()
    planned = planning.with_known_tasks(planned)
    for item in planning.family(planned).values():
        if item.run.name in seen:
            cost += TotalCost(shared=1)
            continue
        seen.add(item.run.name)
        if not item.lacks_pretraining:
            cost += TotalCost(runs=1, finished=1)
            continue
        price = dry_run.price(item, known)
        cost += TotalCost(runs=1, flops=price.flops, seconds=price.seconds, disk_bytes=price.disk_bytes)
    cost += TotalCost(shared=len(planned) - len({item.run.name for item in planned}))
    for (run, task, seed), seconds in dry_run.finetuning_seconds(planned, known).items():
        key = f"{run}, {task}, seed {seed}"
        if key not in seen:
            seen.add(key)
            cost += TotalCost(finetunings=1, finetuning_seconds=seconds)
    return cost
