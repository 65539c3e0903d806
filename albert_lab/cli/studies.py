"""Commands that train and report: one model, sweeps, experiment files, and each table of the paper."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert_lab.cli.options import (
    START,
    STUDIES,
    TABLES,
    DryRun,
    FailFast,
    FailOn,
    Fresh,
    Jobs,
    Json,
    ListFolders,
    On,
    RetryFailed,
    Slurm,
    StudyOptions,
    Tasks,
    examples,
    settings,
    task_names,
)
from albert_lab.errors import ConfigError
from albert_lab.messages import to_stderr
from albert_lab.studies import paper

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.studies.execute import Options
    from albert_lab.studies.experiment import Experiment
    from albert_lab.studies.plan import Plan

    Choose = Callable[[list[str]], tuple[Experiment, list[str]]]

NOT_SUPPORTED = 5
_ROWS_SHOWN = 6  # of a dry run
# Shown below the first line of each study's help.
_WRITES = (
    "Trains the runs that are not there yet, below lab/runs/, and writes their report with figures to"
    " lab/reports/SCALE-CORPUS/NAME/. The same command, given again, resumes what was interrupted and trains nothing"
    " twice. `albert-lab -h` lists the exit codes."
)

app = typer.Typer()


def run_study(choose: "Choose", overrides: list[str], options: StudyOptions) -> None:
    """Plan an experiment, train the runs that are missing, write its report and print the results; exit with its code.

    choose receives the overrides except those of the launcher and start_from, and returns the experiment and the
    overrides of its runs.
    """
    from albert_lab.cli.train import train_study
    from albert_lab.studies.plan import plan_study
    from albert_lab.studies.starts import take_start

    how, rest = options.take_launcher(overrides)
    start, rest = take_start(rest)
    experiment, rest = choose(rest)
    plan = plan_study(experiment.started_from(start), rest, task_names(options.tasks))
    _note_wide_embeddings(plan)
    if options.dry_run:
        print_price([plan], options)
        if not options.as_json:
            _print_scripts(plan, how)
        return
    if options.list_folders:
        print_folders([plan], as_json=options.as_json)
        return
    code, analysis = train_study(options.reset(plan), how)
    if analysis:
        from albert_lab.report import report
        from albert_lab.terminal import last

        folder = plan.report_folder
        if options.as_json:
            print(report.as_json(folder.name, analysis))
        else:
            last.show(folder, analysis)
        exit_on(options.fail_on, set(analysis.verdicts["verdict"]), code)
    raise typer.Exit(code)


def _note_wide_embeddings(plan: "Plan") -> None:
    """Say so before anything else where E is above H, as with the paper's sizes at a small scale."""
    configs = [item.point.config for item in plan.points]
    wide = {(config.model.hidden_size, config.embedding_size): config.scale.name for config in configs}
    of_width: dict[int, list[str]] = {}
    for hidden_size, embedding_size in sorted(wide):
        if embedding_size > hidden_size:
            of_width.setdefault(hidden_size, []).append(str(embedding_size))
    if of_width:
        sizes = "; ".join(f"embedding_size={','.join(es)} above model.hidden_size={h}" for h, es in of_width.items())
        scale = configs[0].scale.name
        to_stderr(
            f"{sizes}. The paper's table of E, at the sizes of this scale: albert-lab embedding-size scale={scale}"
        )


def print_price(plans: "Sequence[Plan]", options: StudyOptions) -> None:
    """Print what is to train: a line a study; of one its rows, of several the sum, in which a run counts once."""
    from albert_lab.machine import jobs_at_once
    from albert_lab.studies import prices

    seen: set[str] = set()
    of_studies = {plan.experiment.name: prices.price(plan, seen) for plan in plans}
    if len(plans) > 1:
        of_studies["all of them"] = sum(of_studies.values(), prices.Price())
    device = options.on or prices.device_of(plans[0].config)
    jobs = jobs_at_once(options.jobs, plans[0].config.machine.processes)
    speed = prices.last_speed(device, jobs)
    if options.as_json:
        print(json.dumps({name: its.as_data(device, speed, jobs) for name, its in of_studies.items()}, indent=2))
    else:
        for name, its in of_studies.items():
            print(f"{name}: {its.as_text(device, speed, jobs, options.on)}")
        rows = [*dict.fromkeys(item.row for item in plans[0].points)] if len(plans) == 1 else []
        for row in rows[:_ROWS_SHOWN]:
            seeds = dict.fromkeys(str(item.point.config.seed) for item in plans[0].points if item.row == row)
            print(f"  {row}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}")
        if len(rows) > _ROWS_SHOWN:
            print(f"  and {len(rows) - _ROWS_SHOWN} more rows")


def _print_scripts(plan: "Plan", how: "Options") -> None:
    from albert_lab.runs import preparing
    from albert_lab.studies import slurm
    from albert_lab.studies.execute import jobs_of

    if how.launcher.name == "slurm":
        unprepared = preparing.lacking(item.run for item in plan.to_train)
        for script in slurm.scripts(jobs_of(plan.to_train), unprepared, how.launcher):
            print(f"script: {slurm.file_of(script)}")


def print_folders(plans: "Sequence[Plan]", *, as_json: bool) -> None:
    """Print the folder and the state of each run, after those of the runs that others start from.

    As JSON with the row of each point; is_row is false for a run that is not in the table.
    """
    from albert_lab.runs import queue, states
    from albert_lab.studies.plan import family

    points = [item for plan in plans for item in plan.points]
    if len(plans) > 1:  # a run of several tables is listed once
        points = list({item.run.name: item for item in points}.values())
    names = {item.run.name for item in points}
    others = [item for name, item in family(points).items() if name not in names]
    rows = [
        {
            "folder": str(item.run.folder),
            "state": "damaged" if states.is_damaged(item.run.folder) else item.state,
            "is_row": item.run.name in names,
        }
        | queue.as_columns(item.run.folder)
        | item.point.as_columns()
        for item in (*others, *points)
    ]
    lines = {  # a run of several rows once
        row["folder"]: f"{row['state']:<8} {item.title:<40} {row['folder']}  {row['place'] or ''}".rstrip()
        for row, item in zip(rows, (*others, *points), strict=True)
    }
    print(json.dumps(rows, indent=2) if as_json else "\n".join(lines.values()))


def exit_on(fail_on: str | None, decisions: Collection[str], code: int) -> None:
    """Exit with the code of --fail-on if nothing else went wrong and a claim has that verdict."""
    if not code and fail_on and fail_on.replace("-", " ") in decisions:
        to_stderr(f"a claim is {fail_on.replace('-', ' ')}")
        raise typer.Exit(NOT_SUPPORTED)


def _one_model(overrides: list[str]) -> "tuple[Experiment, list[str]]":
    from albert_lab.studies.experiment import one_model

    return one_model(overrides)


def _sweep(overrides: list[str]) -> "tuple[Experiment, list[str]]":
    from albert_lab.studies.experiment import from_overrides

    return from_overrides(overrides)


def _named(name: str) -> "Choose":
    def choose(overrides: list[str]) -> "tuple[Experiment, list[str]]":
        from albert_lab.studies.experiment import named

        return named(name), overrides

    return choose


def _of_file(arguments: list[str]) -> "tuple[Experiment, list[str]]":
    """The study of the file that is the first argument; docs/your-own-study.md lists its keys."""
    from albert_lab.studies.experiment import include_and_read

    if not arguments or "=" in arguments[0]:
        raise ConfigError("name an experiment file: albert-lab run my-study.yaml [KEY=VALUE]...")
    return include_and_read(Path(arguments[0])), arguments[1:]


def add(
    name: str,
    act: Callable[[list[str], StudyOptions], None],
    help: str,
    *lines: str,
    panel: str = START,
    listed: str | None = None,
    metavar: str = "[KEY=VALUE]...",
    hidden: Sequence[str] = (),
) -> None:
    """Add the command of a study, with its help, examples, its line in the list of commands, and other names of it."""

    def command(
        overrides: Annotated[list[str] | None, settings(metavar)] = None,
        *,
        tasks: Tasks = None,
        jobs: Jobs = 1,
        slurm: Slurm = None,
        fail_fast: FailFast = False,
        fresh: Fresh = False,
        retry_failed: RetryFailed = False,
        dry_run: DryRun = False,
        list_folders: ListFolders = False,
        on: On = None,
        fail_on: FailOn = None,
        as_json: Json = False,
    ) -> None:
        given = (
            tasks,
            jobs,
            slurm,
            fail_fast,
            fresh,
            retry_failed,
            dry_run,
            list_folders,
            on,
            fail_on,
            as_json,
        )
        act(overrides or [], StudyOptions(*given))

    text = f"{help}\n\n{_WRITES}"
    for known_as in (name, *hidden):
        shown = {"short_help": listed or help, "hidden": known_as != name}
        app.command(known_as, rich_help_panel=panel, epilog=examples(*lines), help=text, **shown)(command)


add(
    "pretrain",
    partial(run_study, _one_model),
    "Pre-train one model and score it on held-out text.",
    "albert-lab pretrain",
    "albert-lab pretrain sharing=not-shared corpus=files corpus.path=my-texts --tasks sst2",
    "albert-lab pretrain start_from=RUN corpus=files corpus.path=my-texts budget.value=1000",
)
add(
    "sweep",
    partial(run_study, _sweep),
    "Train a model for each combination of the given values and report all of them in one table.",
    "albert-lab sweep embedding_size=64,128,256,768",
    "albert-lab sweep sharing=all-shared,not-shared seed=0,1,2 --jobs 2",
)


add(
    "run",
    partial(run_study, _of_file),
    "Run the study of an experiment file of your own.",
    "albert-lab run my-study.yaml",
    "albert-lab run my-study.yaml scale=smoke --dry-run",
    panel=STUDIES,
    metavar="FILE [KEY=VALUE]...",
)


def _numbers(places: str) -> list[str]:
    """The names of a table by the numbers of the paper, as table5; a figure that a table has too is the table's."""
    table, figure = re.match(r"Tables? ([\d and,]+)", places), re.match(r"Figures? (\d+)", places)
    found = [f"table{number}" for number in re.findall(r"\d+", table[1])] if table else []
    return found + ([f"figure{figure[1]}"] if figure else [])


def _add_tables() -> None:
    """Add a command for each experiment file that comes with the package."""
    for file in paper.in_order():
        name, title = file.stem, paper.line(file, "title") or file.stem
        places = re.search(r"(Table|Figure).*", paper.line(file, "source"))
        add(
            name,
            partial(run_study, _named(name)),
            f"Reproduce {places.group()} of the paper: “{title}”." if places else f"Run the study “{title}”.",
            f"albert-lab {name}",
            f"albert-lab {name} scale=smoke seed=0,1,2 --jobs 2",
            panel=START if name == "sop-vs-nsp" else TABLES,
            listed=f"{places.group()}: {title}" if places else title,
            hidden=_numbers(places.group()) if places else (),
        )


_add_tables()
