"""The whole paper: the experiment files that come with the package, one by one for the help, or planned together."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from albert_lab import paths
from albert_lab.errors import ConfigError, MissingDataError, within
from albert_lab.messages import quiet, to_stderr

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.studies.experiment import Experiment
    from albert_lab.studies.plan import Plan


def in_order() -> list[Path]:
    """The experiment files by table of the paper, then those that are only a figure."""
    return sorted(paths.EXPERIMENTS.glob("*.yaml"), key=_place)


def line(file: Path, key: str) -> str:
    """The value of a key that is a line of an experiment file, without the cost of parsing YAML; empty if none."""
    for text in file.read_text(encoding="utf-8").splitlines():
        if text.startswith(f"{key}:"):
            return text.removeprefix(f"{key}:").strip().strip("\"'")
    return ""


def _place(file: Path) -> tuple[bool, int, str]:
    table, figure = (re.search(rf"{kind}s? (\d+)", line(file, "source")) for kind in ("Table", "Figure"))
    number = table or figure
    return table is None, int(number.group(1)) if number else 0, file.stem


def experiments() -> "list[Experiment]":
    from albert_lab.studies.experiment import named

    return [named(file.stem) for file in in_order()]


def plan_paper(overrides: Sequence[str], tasks: Sequence[str] | None = None) -> "list[Plan]":
    """The plan of every experiment of the paper; writes nothing.

    A table of tasks alone is left out, in one line, if none of them has its data.

    Args:
        overrides: `key=value` texts that win over every experiment.
        tasks: names of the downstream tasks; None: those that fill each experiment's columns.

    Raises:
        ConfigError: an override that an experiment cannot take; names the experiment.
        MissingDataError: text, or the data of a task given by its name, is missing.
    """
    from albert_lab.runs.finetunings import choose_tasks
    from albert_lab.studies.plan import plan_study

    plans, left_out, said = [], [], set[str]()

    def say_once(line: str) -> None:
        if line not in said:
            to_stderr(line)
        said.add(line)

    for experiment in experiments():
        if tasks is None and experiment.ensemble and not choose_tasks(experiment.columns, quiet):
            left_out.append(experiment.name)
            continue
        try:
            plans.append(plan_study(experiment, overrides, tasks, say_once))
        except (ConfigError, MissingDataError) as error:
            raise within(experiment.name, error) from error
    if left_out:
        to_stderr(f"no files of their tasks, left out: {', '.join(left_out)}")
    return plans
