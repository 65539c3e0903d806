"""The command that climbs a ladder: any experiment along rungs of size or budget, and the trends of its effects."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import (
    STUDIES,
    StudyOverrides,
    TrainingOptions,
    examples,
    task_names,
    with_options,
)
from albert_lab.cli.train import this_command
from albert_lab.errors import ConfigError
from albert_lab.messages import to_stderr

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.cost.rates import Rates
    from albert_lab.studies.experiment import Experiment
    from albert_lab.studies.ladder import Ladder, PlannedRung
    from albert_lab.studies.ladder_results import LadderFile

app = typer.Typer()


@app.command(
    rich_help_panel=STUDIES,
    epilog=examples(
        "albert-lab ladder sharing embedding_size=H sharing=all-shared,not-shared scale=overnight --dry-run",
        "albert-lab ladder sop-vs-nsp scale=overnight --hours 8 --jobs 2",
        "albert-lab ladder my-study.yaml --along tokens",
        "albert-lab ladder sweep dropout=0,0.1 --along my-ladder.yaml",
    ),
)
@with_options(TrainingOptions, tasks="none")
def ladder(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="The name of an experiment, such as sharing; an experiment file of your own; or sweep, with the rows"
            " in the settings.",
        ),
    ],
    overrides: StudyOverrides = None,
    along: Annotated[
        str,
        typer.Option(
            "--along",
            metavar="LADDER",
            help="The rungs: size, tokens or smoke (conf/ladder/), or a .yaml file of your own.",
        ),
    ] = "size",
    hours: Annotated[
        float | None,
        typer.Option(
            "--hours",
            min=0.0,
            help="Train only what fits into so many hours, at a rung all seeds of a planned look or none: the first"
            " look from the lowest rung up, then the next. With 0 the report is of the runs that are there.",
            show_default=False,
        ),
    ] = None,
    looks: Annotated[
        int | None,
        typer.Option(
            "--looks",
            min=1,
            metavar="N",
            help="Take the seeds of so many planned looks (`scale.looks`) only; the report has the level of that look."
            " With `seed=...` there is a single look at these seeds.",
            show_default=False,
        ),
    ] = None,
    *,
    options: TrainingOptions,
) -> None:
    """Train an experiment at several sizes or budgets, and report whether its effects grow or shrink with compute.

    Each rung is an ordinary study: its runs count in other studies, and the same command, given again, resumes what was
    interrupted. The report, with figures, goes to lab/reports/SCALE-CORPUS/ladder-EXPERIMENT-LADDER/.
    """
    from albert_lab.analysis.ladder import analyse
    from albert_lab.analysis.ladder_plan import expected_slopes
    from albert_lab.machine import jobs_at_once
    from albert_lab.report import ladder as report
    from albert_lab.runs.speeds import choose_rates
    from albert_lab.studies import ladder as ladders
    from albert_lab.studies import ladder_cost, ladder_results
    from albert_lab.studies.execute import Outcome, execute
    from albert_lab.studies.plan import report_place
    from albert_lab.studies.recorded import set_aside

    if options.dry_run and hours == 0:
        raise ConfigError("--dry-run and --hours 0, which trains nothing: give one of them")
    how, rest = options.take_launcher(overrides)
    rungs_of = ladders.read(along)
    study, rest = _experiment(experiment, rest)
    all_rungs = [rung.until(looks) for rung in ladders.plan_rungs(study, rungs_of, rest, task_names(options.tasks))]
    config = all_rungs[0].plan.config
    known = choose_rates(options.on, config)
    folder = paths.reports() / report_place(config) / f"ladder-{study.name}-{rungs_of.name}"
    at_once = 1 if options.dry_run and options.on else jobs_at_once(options.jobs, config.machine.processes)
    rungs = all_rungs if hours is None else ladder_cost.within(all_rungs, hours, at_once, known)
    file = _file(study, rungs_of, all_rungs, known)
    expected: list[str] = []
    if options.dry_run or hours:
        finished = ladder_results.gather(file, all_rungs, {}, folder, to_stderr)
        expected = list(map(str, expected_slopes(rungs, finished, known)))
    if options.dry_run:
        costs = ladder_cost.costs(rungs, ladders.looks_of(all_rungs)[:looks], known)
        costs = replace(costs, notes=[*costs.notes, *expected])
        print(json.dumps(costs.as_dict(), indent=2) if options.as_json else costs.as_text())
        return
    if hours:
        to_stderr("; ".join(f"{rung.name}: seeds {', '.join(map(str, rung.seeds))}" for rung in rungs))
        for line in expected:
            to_stderr(line)
    kept = {rung.name: rung.seeds for rung in rungs}
    order = [rung.of_seed(seed) for rung, seed in ladders.in_order(all_rungs) if seed in kept.get(rung.name, ())]
    outcome = Outcome()
    if order:
        plan = options.reset(replace(all_rungs[0].plan, points=sum(order, ())))
        if hours != 0:
            outcome = execute(plan.with_tasks_made(to_stderr) if how.prepares_here else plan, how)
        if outcome.is_detached:
            raise typer.Exit(outcome.code)
    results = ladder_results.gather(file, [rung.updated() for rung in all_rungs], outcome.failures, folder, to_stderr)
    if not results.runs:
        to_stderr("no run is finished: no report")
        raise typer.Exit(outcome.code)
    set_aside(folder, list(results.runs.values()), to_stderr)
    analysis = analyse(results)
    written = report.write(folder, analysis)
    print(report.as_json(analysis) if options.as_json else report.as_text(analysis))
    to_stderr(f"report: {written}")
    raise typer.Exit(outcome.code)


def _experiment(name: str, overrides: Sequence[str]) -> "tuple[Experiment, Sequence[str]]":
    from albert_lab.studies import experiment

    if name == "sweep":
        return experiment.from_overrides(overrides)
    if name.endswith(".yaml"):
        return experiment.include_and_read(Path(name)), overrides
    known = [file.stem for file in experiment.files()]
    if name not in known:
        raise ConfigError(f"{name}: no such experiment (allowed: {', '.join(known)}, sweep, or a .yaml file)")
    return experiment.named(name), overrides


def _file(experiment: "Experiment", ladder: "Ladder", rungs: "Sequence[PlannedRung]", known: "Rates") -> "LadderFile":
    from albert_lab.studies.ladder import looks_of, place_of_prediction
    from albert_lab.studies.ladder_results import LadderFile, LadderPoint
    from albert_lab.studies.prices import price

    points = [
        LadderPoint(
            rung=rung.name,
            row=item.point.row,
            seed=item.point.config.seed,
            run=item.run.name,
            estimated_seconds=price(item, known).seconds if item.lacks_pretraining else None,
            estimated_on="cuda" if known.gpu else "cpu",
        )
        for rung in rungs
        for item in rung.points
    ]
    return LadderFile(
        experiment=experiment,
        ladder=ladder,
        predicted_flops=place_of_prediction(ladder),
        command=this_command(),
        looks=looks_of(rungs),
        points=tuple(points),
    )
