"""The command that runs the whole paper."""

import json
from contextlib import suppress
from dataclasses import replace

import typer

from albert_lab import paths
from albert_lab.cli import studies
from albert_lab.cli.making import make
from albert_lab.cli.options import (
    TABLES,
    Detach,
    DryRun,
    FailFast,
    FailOn,
    Fresh,
    Jobs,
    Json,
    ListFolders,
    Looks,
    On,
    RemakeRecorded,
    RetryFailed,
    Slurm,
    StudyOverrides,
    Tasks,
    check_views,
    examples,
    note,
    task_names,
)

app = typer.Typer()


@app.command(
    rich_help_panel=TABLES, epilog=examples("albert-lab paper --dry-run", "albert-lab paper scale=smoke --jobs 2")
)
def paper(
    overrides: StudyOverrides = None,
    *,
    tasks: Tasks = None,
    jobs: Jobs = 1,
    slurm: Slurm = None,
    detach: Detach = False,
    fail_fast: FailFast = False,
    fresh: Fresh = False,
    retry_failed: RetryFailed = False,
    remake_recorded: RemakeRecorded = False,
    dry_run: DryRun = False,
    on: On = None,
    list_folders: ListFolders = False,
    looks: Looks = None,
    as_json: Json = False,
    fail_on: FailOn = None,
) -> None:
    """Run or resume all tables and figures, and summarise them with all claims on one page.

    With --dry-run: the cost of each experiment at this scale, and of all of them at every scale.
    """
    from albert_lab.config.launcher import take
    from albert_lab.errors import FIXABLE, INTERRUPTED, STOPPED
    from albert_lab.report import collection, overview
    from albert_lab.studies import paper as whole
    from albert_lab.studies import planning, sweep

    check_views(dry_run=dry_run, list_folders=list_folders, on=on)
    launcher, given = take(overrides or [], slurm, detach=detach)
    names = task_names(tasks)
    if dry_run:
        costs = whole.costs(given, names, note, on, looks)
        print(json.dumps(costs.as_dict(), indent=2) if as_json else costs.as_text())
        return
    found = whole.plan(given, names)
    if list_folders:
        together = [item for study in found for item in planning.with_known_tasks(study.at_look(looks))]
        studies.print_folders(list({item.run.name: item for item in together}.values()), as_json=as_json)
        return
    # Before the first table, so that a run of several tables is trained again only once.
    again = {"fresh": fresh, "retry_failed": retry_failed, "remake_recorded": remake_recorded}
    found = [replace(study, planned=planning.forget(study.planned, **again)) for study in found]
    code = 0
    options = sweep.Options(jobs, fail_fast, launcher, detach)
    if not options.is_here:  # submit all runs to the queue, so that no table waits for another
        for study in found:
            with suppress(*FIXABLE):  # reported below
                sweep.execute(planning.with_known_tasks(study.at_look(1)), replace(options, detach=True))
    for number, study in enumerate(found, 1):
        note(f"{number} of {len(found)}: {study.experiment.name}, {study.experiment.source}")
        try:
            ended, *_ = make(study.experiment, study.planned, options, study.seed_plan, looks)
        except FIXABLE as error:
            note(f"FAILED {study.experiment.name}: {error}")
            ended = sweep.SOME_FAILED
        if ended in (STOPPED, INTERRUPTED):
            raise typer.Exit(ended)
        code = sweep.SOME_FAILED if ended else code
        if ended and fail_fast:
            break
    config = found[0].planned[0].point.config
    collections = {(each.scale, each.corpus): each for each in collection.read(paths.reports())}
    found = collections.get((config.scale.name, config.corpus.name))
    if found is None:
        note("no run is finished: no page")
        raise typer.Exit(code)
    note(f"page: {overview.write(paths.reports())}")
    print(json.dumps(found.as_dict(), indent=2) if as_json else overview.contents(found))
    studies.exit_on(fail_on, found.decisions, code)
    raise typer.Exit(code)
