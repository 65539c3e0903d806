"""The training of a study, look by look, with a report after each."""

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from albert_lab import paths
from albert_lab.cli.options import note

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.analysis.analysis import Analysis
    from albert_lab.studies.experiment import Experiment
    from albert_lab.studies.planning import PlannedPoint
    from albert_lab.studies.seed_plan import SeedPlan
    from albert_lab.studies.sweep import Options

# Options for training runs again, or elsewhere; the command in a report does not have them.
ONCE = ("--fresh", "--retry-failed", "--remake-recorded", "--detach")


def make(
    experiment: "Experiment",
    planned: "list[PlannedPoint]",
    options: "Options",
    plan: "SeedPlan",
    most: int | None = None,
) -> "tuple[int, Path, Analysis | None]":
    """Train the missing runs and write the report, look by look while more seeds can decide a claim.

    Returns the exit code, the report's folder, and the analysis of the study; None if no run is done. A study does not
    go back to a look before the one at which its report stands.

    Args:
        experiment: the experiment.
        planned: the points of all looks.
        options: those of the sweep.
        plan: the plan of its seeds.
        most: the number of looks after which it ends; None: as many as are planned.
    """
    from albert_lab.studies import planning
    from albert_lab.studies.collect import study_points
    from albert_lab.studies.study import announce
    from albert_lab.studies.sweep import Outcome

    prepare = planning.with_available_tasks if options.prepares_here else planning.with_known_tasks
    planned = prepare(planned)
    folder = paths.reports() / planning.report_place(planned[0].point.config) / experiment.name
    command = shlex.join(["albert-lab", *repeatable(sys.argv[1:])])
    plan, look = announce(folder, study_points(planned, Outcome(), command), plan)
    last = None
    while True:
        code, found = _make_look(experiment, planning.at_look(planned, plan, look), options, plan, folder, command)
        last = found or last
        undecided = sum(verdict.is_open for verdict in found.verdicts) if found else 0
        if code or look >= plan.last(most) or not undecided:
            return code, folder, last
        look += 1
        claims = "1 claim" if undecided == 1 else f"{undecided} claims"
        note(f"look {look} of {len(plan.looks)}, {plan.looks[look - 1]} seeds: more seeds can decide {claims}")


def _make_look(
    experiment: "Experiment",
    planned: "list[PlannedPoint]",
    options: "Options",
    plan: "SeedPlan",
    folder: Path,
    command: str,
) -> "tuple[int, Analysis | None]":
    """Train the missing runs of a look and write its report; the exit code, and the analysis if there is a report."""
    from albert_lab.analysis.analysis import analyse
    from albert_lab.report import report
    from albert_lab.studies import planning, recorded, sweep
    from albert_lab.studies.collect import collect

    outcome = sweep.execute(planned, options)
    if outcome.is_left:
        return outcome.code, None
    planned = planning.with_available_tasks(planned)
    study = collect(experiment, planned, outcome, command, folder, note, plan)
    if not study.runs:
        note("no run is finished: no report")
        return outcome.code, None
    recorded.set_aside(folder, study.runs, note)
    found = analyse(study)
    report.write(folder, found)
    return outcome.code, found


def repeatable(words: Sequence[str]) -> list[str]:
    """The arguments of a command without those on how, or where, its runs are made this time."""
    kept: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        is_once = word in ONCE or "--slurm" in (before, word) or re.match(r"--slurm=|\+*launcher(\.\w+)?=", word)
        if not is_once:
            kept.append(word)
    return kept
