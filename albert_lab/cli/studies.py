"""Commands that make runs and reports: sweeps, experiment files, and one command for each table of the paper."""

import json
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from albert_lab import paths
from albert_lab.cli.options import (
    STUDIES,
    DryRun,
    FailFast,
    FailOn,
    Fresh,
    Jobs,
    Json,
    ListFolders,
    Overrides,
    RetryFailed,
    Tasks,
    check_views,
    examples,
    note,
    task_names,
)

if TYPE_CHECKING:
    from albert_lab.studies.experiment import Experiment
    from albert_lab.studies.sweep import Options, PlannedPoint

NOT_SUPPORTED = 5

app = typer.Typer()


def _study(choose: "Callable[..., tuple[Experiment, Sequence[str]]]") -> Callable[..., None]:
    """A command that takes what `choose` takes, and the options of all studies."""
    own = list(signature(choose).parameters.values())

    def command(**given: Any) -> None:
        execute(*choose(**{parameter.name: given.pop(parameter.name) for parameter in own}), **given)

    shared = [item for item in signature(execute).parameters.values() if item.kind is Parameter.KEYWORD_ONLY]
    parameters = [item.replace(kind=Parameter.KEYWORD_ONLY) for item in [*own, *shared]]
    # What Typer reads a command's options from.
    command.__signature__ = Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {item.name: item.annotation for item in parameters}
    command.__doc__ = choose.__doc__
    return command


def execute(
    experiment: "Experiment",
    overrides: Sequence[str],
    *,
    tasks: Tasks = None,
    jobs: Jobs = 1,
    fail_fast: FailFast = False,
    fresh: Fresh = False,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    list_folders: ListFolders = False,
    as_json: Json = False,
    fail_on: FailOn = None,
) -> None:
    """Make the runs of an experiment that are missing, write its report and print its table; exits with its code."""
    from albert_lab.report import report
    from albert_lab.studies import sweep
    from albert_lab.studies.dry_run import costs

    check_views(dry_run=dry_run, list_folders=list_folders)
    planned = sweep.plan(experiment, overrides, task_names(tasks))
    if dry_run:
        found = costs(planned)
        print(json.dumps(found.as_dict(), indent=2) if as_json else found.as_text())
        return
    if list_folders:
        print_folders(planned, as_json=as_json)
        return
    planned = sweep.forget(planned, fresh=fresh, retry_failed=retry_failed)
    code, folder = make(experiment, planned, sweep.Options(jobs, fail_fast))
    if folder:
        print(report.as_json(folder) if as_json else report.scores(folder))
        exit_on(fail_on, report.decisions(folder), code)
    raise typer.Exit(code)


def print_folders(planned: "Sequence[PlannedPoint]", *, as_json: bool) -> None:
    """Print the folder of each point's run with its state; as JSON with its row, as points.csv has it."""
    rows = [{"folder": str(item.run.folder), "state": item.state} | item.point.as_columns() for item in planned]
    print(json.dumps(rows, indent=2) if as_json else "\n".join(f"{row['state']:<8} {row['folder']}" for row in rows))


def make(experiment: "Experiment", planned: "list[PlannedPoint]", options: "Options") -> "tuple[int, Path | None]":
    """Make the runs that are missing and write the report; the exit code, and the report's folder if a run is done."""
    from albert_lab.report import report
    from albert_lab.studies import ensembles, layers, recorded, sweep

    planned = sweep.with_available_tasks(planned)
    outcome = sweep.execute(planned, options)
    command = shlex.join(["albert-lab", *(word for word in sys.argv[1:] if word not in ("--fresh", "--retry-failed"))])
    points = sweep.points_table(planned, outcome, command)
    if not any(points["state"] == "done"):
        note("no run is finished: no report")
        return outcome.code, None
    folder = paths.reports() / sweep.report_place(planned[0].point.config) / experiment.name
    tables = sweep.tables(planned)
    runs, _, tunings = tables
    recorded.set_aside(folder, runs, tunings, note)
    layers.keep(folder, experiment, planned, note)
    ensembles.keep(folder, experiment, planned, note)
    file = report.write(folder, experiment, points, *tables)
    note(f"report: {file}, and as a page {file.with_name(report.PAGE)}")
    return outcome.code, folder


def exit_on(fail_on: str | None, decisions: Collection[str], code: int) -> None:
    """Exit with the code of --fail-on where nothing else went wrong and a claim has its verdict."""
    if not code and fail_on and fail_on.replace("-", " ") in decisions:
        note(f"a claim of the paper is {fail_on.replace('-', ' ')}")
        raise typer.Exit(NOT_SUPPORTED)


def _sweep(overrides: Overrides = None) -> "tuple[Experiment, Sequence[str]]":
    """Run every combination of the given values and write their table."""
    from albert_lab.studies.experiment import from_overrides

    return from_overrides(overrides or [])


def _run(
    file: Annotated[Path, typer.Argument(help="An experiment file of your own, like those in experiments/.")],
    overrides: Overrides = None,
) -> "tuple[Experiment, Sequence[str]]":
    """Run an experiment file of your own."""
    from albert_lab.studies.experiment import read

    return read(file), overrides or []


def _continue(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A finished or imported run, by name or folder.")],
    overrides: Overrides = None,
) -> "tuple[Experiment, Sequence[str]]":
    """Go on with the pre-training of a run, an import for one, from its weights with fresh moments."""
    from albert_lab.studies.continuing import experiment

    return experiment(run, overrides or []), overrides or []


def _named(name: str) -> "Callable[..., tuple[Experiment, Sequence[str]]]":
    def choose(overrides: Overrides = None) -> "tuple[Experiment, Sequence[str]]":
        from albert_lab.studies.experiment import named

        return named(name), overrides or []

    return choose


def _title(file: Path) -> str:
    """The title line of an experiment file, without the cost of parsing YAML before every --help."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("title:"):
            return line.removeprefix("title:").strip().strip("\"'")
    return file.stem


def _add(name: str, choose: "Callable[..., tuple[Experiment, Sequence[str]]]", *lines: str, **options: str) -> None:
    app.command(name, rich_help_panel=STUDIES, epilog=examples(*lines), **options)(_study(choose))  # pyright: ignore[reportArgumentType]


_add(
    "sweep",
    _sweep,
    "albert-lab sweep embedding_size=64,128,256,768",
    "albert-lab sweep sharing=all-shared,not-shared seed=0,1,2 --jobs 2",
)
_add("run", _run, "albert-lab run my-study.yaml", "albert-lab run my-study.yaml scale=smoke --dry-run")
_add(
    "continue",
    _continue,
    "albert-lab continue RUN corpus=files corpus.path=my-texts budget.value=1000",
    "albert-lab continue RUN optimizer.learning_rate=1e-4,1e-3 seed=0,1,2",
)
for _file in sorted(paths.EXPERIMENTS.glob("*.yaml")):
    _add(
        _file.stem,
        _named(_file.stem),
        f"albert-lab {_file.stem}",
        f"albert-lab {_file.stem} scale=smoke seed=0,1,2 --jobs 2",
        help=f"{_title(_file)}.",
    )


@app.command(
    rich_help_panel=STUDIES,
    epilog=examples("albert-lab report reports/laptop-sotu/sop-vs-nsp", "albert-lab report reports/*/*/ reports"),
)
def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            file_okay=False,
            help="Folders with the CSV files of a report; a folder of such folders gets the page of all.",
        ),
    ],
) -> None:
    """Rebuild reports, as Markdown and as HTML, from the CSV files beside them, and the paper on one page from them."""
    from albert_lab.report import collection as chapters
    from albert_lab.report import overview
    from albert_lab.report.report import PAGE, rebuild

    for folder in folders:
        if chapters.holds_reports(folder):
            print(overview.write(folder))
        else:
            file = rebuild(folder)
            print(file, file.with_name(PAGE), sep="\n")


@app.command(
    rich_help_panel=STUDIES,
    epilog=examples(
        "albert-lab compare reports/laptop-sotu/sop-vs-nsp reports/gpu-files/sop-vs-nsp",
        "albert-lab compare before/sop-vs-nsp reports/laptop-sotu/sop-vs-nsp --json",
    ),
)
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", file_okay=False, help="Folder of a report.")],
    b: Annotated[
        Path,
        typer.Argument(metavar="B", file_okay=False, help="Folder of another: a scale, a machine, after a change."),
    ],
    as_json: Json = False,
) -> None:
    """Put two sets of results side by side, with intervals and differences."""
    from albert_lab.report import compare as sides

    found = sides.compare(a, b)
    print(sides.as_json(found) if as_json else sides.as_text(found))
    if not found.has_one_set:
        note("the held-out sets differ: compare directions, not values")
