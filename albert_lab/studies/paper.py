"""The whole paper: every experiment file that comes with the package, planned together and priced at every scale."""

import re
from collections.abc import Sequence

from albert_lab import paths
from albert_lab.config.compose import axes, load
from albert_lab.cost.listing import Listing
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.messages import Say
from albert_lab.runs.speeds import choose_rates
from albert_lab.studies.experiment import Experiment, files, named
from albert_lab.studies.plan import Plan, plan_study
from albert_lab.studies.prices import Cost, cost_of


def experiments() -> list[Experiment]:
    """Every packaged experiment in the paper's order: tables first, then experiments with only a figure."""
    return sorted((named(file.stem) for file in files()), key=_place)


def _place(experiment: Experiment) -> tuple[bool, int]:
    table = re.search(r"Tables? (\d+)", experiment.source)
    figure = re.search(r"Figure (\d+)", experiment.source)
    number = table or figure
    return table is None, int(number.group(1)) if number else 0


def plan_paper(overrides: Sequence[str], tasks: Sequence[str] | None = None) -> list[Plan]:
    """The plan of every experiment of the paper; writes nothing.

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
            found.append(plan_study(experiment, overrides, tasks))
        except (ConfigError, MissingDataError) as error:
            raise type(error)(f"{experiment.name}: {error}") from error
    return found


def scales() -> list[str]:
    names = [file.stem for file in paths.conf_files("scale/*.yaml")]
    return sorted(names, key=lambda name: (config := load([f"scale={name}"])).scale.budget.steps * config.batch_size)


def costs(
    overrides: Sequence[str], tasks: Sequence[str] | None, say: Say, on: str | None = None, looks: int | None = None
) -> Listing:
    """The cost of the paper: each experiment at the chosen scale, then the total at every scale; writes nothing.

    Args:
        overrides: see plan_paper().
        tasks: see plan_paper().
        say: receives the scale that is planned.
        on: the device (see prices.costs).
        looks: the number of looks that are priced; None: all.

    Raises: see plan_paper().
    """
    chosen = plan_paper(overrides, tasks)
    config = chosen[0].config
    known, name = choose_rates(on, config), config.scale.name
    seen: set[str] = set()
    by_experiment = {
        plan.experiment.name: cost_of(plan.at_look(plan.seed_plan.last(looks)).points, known, seen) for plan in chosen
    }
    totals = {name: sum(by_experiment.values(), Cost())}
    # A seed does not change the price: one is priced for all, since composing configurations takes time.
    seeds = axes(overrides).get("seed")
    rest = [text for text in overrides if text.split("=")[0] not in ("scale", "seed")]
    for scale in scales():
        if scale != name:
            say(f"planning scale={scale}")
            seen = set()
            found = plan_paper([*rest, f"scale={scale}", "seed=0"], tasks)
            of_scale = found[0].config.scale.looks
            number = len(seeds) if seeds else of_scale[min(looks or len(of_scale), len(of_scale)) - 1]
            totals[scale] = sum((cost_of(plan.points, known, seen) for plan in found), Cost()).times(number)
    source = known.source(item.point.config for plan in chosen for item in plan.points)
    rows = [{"scale": name, "experiment": key} | cost.as_row() for key, cost in by_experiment.items()]
    rows += [{"scale": scale, "experiment": "all of them"} | totals[scale].as_row() for scale in scales()]
    notes = [
        "Runs of a row above are not counted again; shared ones are trained once, in the first row. Finished runs cost"
        " nothing: time and disk are those of the runs to train.",
        f"Time, at scale={name}: {source}; one run after another, fine-tuning at the full length of every example.",
        "Evaluation and the preparation of text are not included; disk is that of checkpoints.",
        *chosen[0].seed_plan.notes(looks),
    ]
    return Listing(rows, notes)
