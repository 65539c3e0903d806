"""The whole paper: every experiment file that comes with the package, planned together."""

from collections.abc import Sequence

from albert_lab import paths
from albert_lab.errors import ConfigError, MissingDataError, within
from albert_lab.messages import quiet, to_stderr
from albert_lab.runs.columns import choose_tasks
from albert_lab.studies import shipped
from albert_lab.studies.experiment import Experiment, named
from albert_lab.studies.plan import Plan, plan_study


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
