"""Commands that train and report: one model, sweeps, experiment files, each table of the paper, and
all of them.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert_lab import paths
from albert_lab.cli import options as of
from albert_lab.cli.options import START, STUDIES, TABLES, settings, shown, task_names
from albert_lab.errors import FIXABLE, INTERRUPTED, STOPPED, ConfigError, MissingDataError
from albert_lab.messages import to_stderr, to_stdout

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.studies.experiment import Experiment
    from albert_lab.studies.jobs import Options
    from albert_lab.studies.plan import Plan

# Shown below the first line of each study's help.
_WRITES = (
    "Trains the runs that are not there yet, below lab/runs/, and writes their report to "
    "lab/reports/SCALE-CORPUS/NAME/. The same command resumes what was interrupted, and trains "
    "nothing twice. `albert-lab -h` has exit codes, and options for code of your own."
)

app = typer.Typer()


def in_order() -> list[Path]:
    """The experiment files by table of the paper, then those that are only a figure."""

    def place(file: Path) -> tuple[bool, int, str]:
        # a table stands before its figure
        first = re.search(r"(Table|Figure)s? (\d+)", _line(file, "source"))
        return first is None or first[1] == "Figure", int(first[2]) if first else 0, file.stem

    return sorted(paths.EXPERIMENTS.glob("*.yaml"), key=place)


def _line(file: Path, key: str) -> str:
    """The value of a key that is a line of an experiment file, without the cost of parsing YAML;
    empty if none.
    """
    found = re.search(rf"^{key}: *(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].strip().strip("\"'") if found else ""


def run_study(name: str, overrides: list[str], options: "Options") -> None:
    """Train the runs of a study that are missing, write its report and print the results; exit with
    its code.
    """
    from albert_lab.studies.plan import plan_study
    from albert_lab.terminal import plans

    experiment, rest = _experiment(name, overrides)
    file = Path(overrides[0]) if name == "run" else None
    plan = plan_study(experiment, rest, task_names(options.tasks), file=file)
    if note := plans.too_wide(plan):
        to_stderr(note)
    (plan,) = _to_train([plan], options)
    # here, since they load pandas, which a dry run does not need
    from albert_lab.report import report
    from albert_lab.terminal import screen
    from albert_lab.terminal.study import train_study

    code, analysis = train_study(plan, options)
    if analysis:
        if options.as_json:
            to_stdout(report.as_json(plan.report_folder.name, analysis))
        else:
            screen.show(plan.report_folder, analysis)
    raise typer.Exit(code)


def run_paper(name: str, overrides: list[str], options: "Options") -> None:
    """Run or resume all tables and figures, and print what holds of the paper; exit as the command
    of one does.
    """
    from albert_lab.studies.experiment import named
    from albert_lab.studies.plan import plan_all

    experiments = [named(file.stem) for file in in_order()]
    planned = plan_all(experiments, overrides, task_names(options.tasks))
    plans = _to_train(planned, options)
    from albert_lab.analysis.sentences import reports, sentences  # here, as above
    from albert_lab.report import scoreboard
    from albert_lab.studies.execute import SOME_FAILED
    from albert_lab.terminal.study import train_study

    codes = set[int]()
    trained = set[Path]()
    for number, plan in enumerate(plans, 1):
        to_stderr(f"{number} of {len(plans)}: {plan.experiment.name}, {plan.experiment.source}")
        try:
            ended, analysis = train_study(plan.updated(), options)
            if analysis:
                trained.add(plan.report_folder)
        except FIXABLE as error:
            to_stderr(f"FAILED {plan.experiment.name}: {error}")
            ended = 4 if isinstance(error, MissingDataError) else 2
        if ended in (STOPPED, INTERRUPTED):
            raise typer.Exit(ended)
        codes.add(ended)
    codes.discard(0)
    code = max(codes, default=0)
    if codes and (trained or len(codes) > 1):
        code = SOME_FAILED
    if trained:
        page = scoreboard.write(paths.reports())
        lines = sentences(reports(paths.reports(), trained))
        as_json = scoreboard.as_data
        as_text = scoreboard.as_text
        to_stdout(json.dumps(as_json(lines), indent=2) if options.as_json else as_text(lines))
        to_stderr(f"all reports: {page}")
    else:
        to_stderr(f"no run is finished: {name} has no scoreboard")
    raise typer.Exit(code)


def _experiment(name: str, overrides: list[str]) -> "tuple[Experiment, list[str]]":
    """The experiment of a command, and the overrides of its runs."""
    from albert_lab.studies import experiment

    if name in ("pretrain", "sweep"):
        return experiment.from_overrides(overrides, is_one=name == "pretrain")
    if name != "run":
        return experiment.named(name), overrides
    if not overrides or "=" in overrides[0]:
        raise ConfigError("name an experiment file: albert-lab run my-study.yaml [KEY=VALUE]...")
    return experiment.read(Path(overrides[0]), with_code=True), overrides[1:]


def _to_train(plans: "Sequence[Plan]", options: "Options") -> "list[Plan]":
    """The plans of a command by the names of their reports.

    --dry-run ends here, before anything is written.
    """
    from albert_lab.studies.study import renamed_if_taken
    from albert_lab.terminal.plans import costs

    plans = [renamed_if_taken(plan, to_stderr) for plan in plans]
    if options.dry_run:
        data, text = costs(plans, options)
        to_stdout(json.dumps(data, indent=2) if options.as_json else text)
        raise typer.Exit
    return plans


def _add(
    name: str,
    help: str,
    *lines: str,
    panel: str = START,
    listed: str | None = None,
    metavar: str = "[KEY=VALUE]...",
) -> None:
    """Add the command of a study, with its help, examples, and its line in the list of commands."""

    def command(
        overrides: Annotated[list[str], settings(metavar)],
        *,
        tasks: of.Tasks = None,
        jobs: of.Jobs = None,
        slurm: of.Slurm = None,
        dry_run: of.DryRun = False,
        as_json: of.Json = False,
    ) -> None:
        from albert_lab.studies.jobs import Options

        options = Options(jobs, slurm, tasks, dry_run, as_json)
        (run_paper if name == "paper" else run_study)(name, overrides, options)

    app.command(
        name, help=f"{help}\n\n{_WRITES}", short_help=listed or help, **shown(panel, *lines)
    )(command)


_add(
    "pretrain",
    "Pre-train one model and score it on held-out text.",
    "albert-lab pretrain sharing=not-shared corpus=files corpus.path=my-texts --tasks sst2",
    "albert-lab pretrain start_from=RUN corpus=files corpus.path=my-texts budget.value=1000",
)
_add(
    "sweep",
    "Train a model for each combination of the given values and report all of them in one table.",
    "albert-lab sweep embedding_size=64,128,256,768",
    "albert-lab sweep sharing=all-shared,not-shared seed=0,1,2 --jobs 2",
)
_add(
    "run",
    "Run the study of an experiment file of your own.",
    "albert-lab run my-study.yaml",
    "albert-lab run my-study.yaml scale=smoke --dry-run",
    panel=STUDIES,
    metavar="FILE [KEY=VALUE]...",
)
for _file in in_order():
    _name = _file.stem
    _title = _line(_file, "title") or _file.stem
    _places = (re.findall(r"(?:Table|Figure).*", _line(_file, "source")) or [""])[0]
    _add(
        _name,
        f"Reproduce {_places} of the paper: “{_title}”."
        if _places
        else f"Run the study “{_title}”.",
        f"albert-lab {_name}",
        f"albert-lab {_name} scale=smoke seed=0,1,2 --jobs 2",
        panel=START if _name == "sop-vs-nsp" else TABLES,
        listed=f"{_places}: {_title}" if _places else _title,
    )
_add(
    "paper",
    "Run or resume all tables and figures, and summarise them with all claims on one page.",
    "albert-lab paper --dry-run",
    "albert-lab paper scale=smoke --jobs 2",
    panel=TABLES,
)
