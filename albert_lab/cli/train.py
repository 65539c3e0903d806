"""The training of a study, and its report."""

import re
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from albert_lab.messages import to_stderr

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.analysis.analysis import Analysis
    from albert_lab.studies.execute import Options
    from albert_lab.studies.plan import Plan

# Options for training runs again, or elsewhere; the command in a report does not have them.
ONCE = ("--fresh", "--retry-failed")


def train_study(plan: "Plan", options: "Options") -> "tuple[int, Analysis | None]":
    """Train the missing runs of a study and write its report.

    Returns the exit code, and the analysis of the study; None if no run is done.
    """
    from albert_lab.analysis.analysis import analyse
    from albert_lab.report import report
    from albert_lab.studies.collect import collect
    from albert_lab.studies.execute import execute

    outcome = execute(plan, options)
    if outcome.is_detached:
        return outcome.code, None
    plan = plan.updated()
    study = collect(plan, outcome.failures, this_command(), to_stderr)
    if not study.runs:
        to_stderr("no run is finished: no report")
        return outcome.code, None
    analysis = analyse(study)
    report.write(plan.report_folder, analysis)
    return outcome.code, analysis


def this_command() -> str:
    """The command line, without options on how, or where, its runs are trained this time."""
    return shlex.join(["albert-lab", *repeatable(sys.argv[1:])])


def repeatable(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command without those on how, or where, its runs are trained this time."""
    kept: list[str] = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        is_once = argument in ONCE or "--slurm" in (before, argument)
        if not is_once and not re.match(r"--slurm=|\+*launcher(\.\w+)?=", argument):
            kept.append(argument)
    return kept
