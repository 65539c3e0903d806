"""The command that runs the whole paper."""

import json

import typer

from albert_lab import paths
from albert_lab.cli.options import StudyOptions, task_names
from albert_lab.cli.studies import exit_on, print_folders, print_price
from albert_lab.messages import to_stderr


def run_paper(overrides: list[str], options: StudyOptions) -> None:
    """Run or resume all tables and figures; with --dry-run, print the cost of each, and of all of them."""
    from albert_lab.analysis.sentences import reports, sentences
    from albert_lab.cli.train import train_study
    from albert_lab.errors import FIXABLE, INTERRUPTED, STOPPED
    from albert_lab.report import scoreboard
    from albert_lab.studies import paper as whole
    from albert_lab.studies.execute import SOME_FAILED

    how, rest = options.take_launcher(overrides)
    tasks = task_names(options.tasks)
    plans = whole.plan_paper(rest, tasks)
    if options.dry_run:
        print_price(plans, options)
        return
    if options.list_folders:
        print_folders(plans, as_json=options.as_json)
        return
    # Before the first table, so that a run of several tables is trained again only once.
    plans = [options.reset(plan) for plan in plans]
    code = 0
    for number, plan in enumerate(plans, 1):
        name = plan.experiment.name
        to_stderr(f"{number} of {len(plans)}: {name}, {plan.experiment.source}")
        try:
            ended, _ = train_study(plan.updated(), how)
        except FIXABLE as error:
            to_stderr(f"FAILED {name}: {error}")
            ended = SOME_FAILED
        if ended in (STOPPED, INTERRUPTED):
            raise typer.Exit(ended)
        code = SOME_FAILED if ended else code
        if ended and options.fail_fast:
            break
    config = plans[0].config
    found = reports(paths.reports(), f"{config.scale.name}-*")
    if not found:
        to_stderr("no run is finished: no scoreboard")
        raise typer.Exit(code)
    page = scoreboard.write(paths.reports())
    lines = sentences(found)
    print(json.dumps(scoreboard.as_data(lines), indent=2) if options.as_json else scoreboard.as_text(lines))
    to_stderr(f"all reports: {page}")
    exit_on(options.fail_on, {line.verdict for line in lines}, code)
    raise typer.Exit(code)
