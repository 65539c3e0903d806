"""The whole paper: every experiment file that comes with the package, planned together and priced."""

from collections.abc import Sequence

from albert_lab import paths
from albert_lab.cost.listing import Listing
from albert_lab.errors import ConfigError, MissingDataError, within
from albert_lab.messages import quiet, to_stderr
from albert_lab.runs.columns import choose_tasks
from albert_lab.runs.speeds import choose_rates
from albert_lab.studies import shipped
from albert_lab.studies.experiment import Experiment, named
from albert_lab.studies.plan import Plan, plan_study
from albert_lab.studies.prices import Cost, cost_of


def experiments() -> list[Experiment]:
    return [named(file.stem) for file in shipped.in_order()]


def plan_paper(overrides: Sequence[str], tasks: Sequence[str] | None = None) -> list[Plan]:
    """The plan of every experiment of the paper; writes nothing.

    A table of tasks alone is left out, in one line, if none of them has its data.

    Args:
        overrides: `key=value` texts that win over every experiment.
        tasks: names of the downstream tasks; None: those that fill each experiment's columns.

    Raises:
        ConfigError: an override that an experiment cannot take; names the experiment.
        MissingDataError: text, or the data of a task given by its name, is missing.
    """
    plans, left_out, said = [], [], set[str]()

    def say_once(line: str) -> None:
        if line not in said:
            to_stderr(line)
        said.add(line)

    for experiment in experiments():
        if tasks is None and experiment.ensemble and not choose_tasks(experiment.columns, quiet):
            left_out.append(f"{experiment.name} ({experiment.source})")
            continue
        try:
            plans.append(plan_study(experiment, overrides, tasks, say_once))
        except (ConfigError, MissingDataError) as error:
            raise within(experiment.name, error) from error
    if left_out:
        to_stderr(f"left out, since {paths.tasks_data()} has none of their tasks: {', '.join(left_out)}")
    return plans


def costs(plans: Sequence[Plan], on: str | None = None) -> Listing:
    """The cost of each experiment of the paper, and of all of them; writes nothing."""
    known = choose_rates(on, plans[0].config)
    seen: set[str] = set()
    by_experiment = {plan.experiment.name: cost_of(plan.points, known, seen) for plan in plans}
    by_experiment["all of them"] = sum(by_experiment.values(), Cost())
    rows = [{"experiment": name} | cost.as_row() for name, cost in by_experiment.items()]
    notes = [
        "Runs of a row above are not counted again; shared ones are trained once, in the first row. Finished runs cost"
        " nothing: time and disk are those of the runs to train.",
        f"Time: {known.source(item.point.config for plan in plans for item in plan.points)}; one run after another,"
        " fine-tuning at the full length of every example.",
        "Evaluation and the preparation of text are not included; disk is that of checkpoints.",
    ]
    return Listing(rows, notes)
