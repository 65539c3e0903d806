"""The training of a study, look by look, with a report after each."""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from albert_lab.messages import to_stderr

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.analysis.analysis import Analysis
    from albert_lab.studies.execute import Options
    from albert_lab.studies.plan import Plan

# Options for training runs again, or elsewhere; the command in a report does not have them.
ONCE = ("--fresh", "--retry-failed", "--retrain-recorded", "--detach")


def train_study(plan: "Plan", options: "Options", most: int | None = None) -> "tuple[int, Analysis | None]":
    """Train the missing runs and write the report, look by look while more seeds can decide a claim.

    Returns the exit code, and the analysis of the study; None if no run is done. A study does not go back to a look
    before the one at which its report stands.

    Args:
        most: the number of looks after which it ends; None: as many as are planned.
    """
    from albert_lab.studies.collect import study_points
    from albert_lab.studies.study import announce

    points = study_points(plan, {}, this_command())
    seed_plan, look = announce(plan.report_folder, points, plan.seed_plan)
    plan, last = replace(plan, seed_plan=seed_plan), None
    while True:
        code, plan, analysis = _train_look(plan, look, options)
        last = analysis or last
        undecided = sum(verdict.is_open for verdict in analysis.verdicts) if analysis else 0
        if code or look >= seed_plan.last(most) or not undecided:
            return code, last
        look += 1
        claims = "1 claim" if undecided == 1 else f"{undecided} claims"
        to_stderr(
            f"look {look} of {len(seed_plan.looks)}, {seed_plan.looks[look - 1]} seeds: more seeds can decide {claims}"
        )


def _train_look(plan: "Plan", look: int, options: "Options") -> "tuple[int, Plan, Analysis | None]":
    """Train the missing runs of a look and write its report.

    Returns the exit code, the plan with its runs as they are then, and the analysis if there is a report.
    """
    from albert_lab.analysis.analysis import analyse
    from albert_lab.report import report
    from albert_lab.studies.collect import collect
    from albert_lab.studies.execute import execute
    from albert_lab.studies.recorded import set_aside

    outcome = execute(plan.at_look(look), options)
    if outcome.is_detached:
        return outcome.code, plan, None
    plan = plan.updated()
    study = collect(plan.at_look(look), outcome.failures, this_command(), to_stderr)
    if not study.runs:
        to_stderr("no run is finished: no report")
        return outcome.code, plan, None
    set_aside(plan.report_folder, study.runs, to_stderr)
    analysis = analyse(study)
    report.write(plan.report_folder, analysis)
    return outcome.code, plan, analysis


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
