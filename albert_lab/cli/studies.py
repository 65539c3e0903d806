"""Commands that train and report: one model, sweeps, experiment files, and each table of the paper."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from albert_lab.cli.options import (
    START,
    STUDIES,
    TABLES,
    Overrides,
    StudyOptions,
    StudyOverrides,
    SweepOverrides,
    examples,
    task_names,
    with_options,
)
from albert_lab.messages import to_stderr
from albert_lab.studies import shipped

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.studies.experiment import Experiment
    from albert_lab.studies.plan import Plan

    Choice = tuple[Experiment, Sequence[str]]

NOT_SUPPORTED = 5
# Shown below the first line of each study's help.
_WRITES = (
    "Trains the runs that are not there yet, below lab/runs/, and writes their report, as Markdown and as a page with"
    " figures, to lab/reports/SCALE-CORPUS/NAME/. The same command, given again, resumes what was interrupted and"
    " trains nothing twice. `albert-lab -h` lists the exit codes."
)

app = typer.Typer()


def _study(choose: "Callable[..., Choice]") -> Callable[..., None]:
    """A command with the parameters of `choose`, which returns the experiment and its overrides, and all options."""

    def command(*, options: StudyOptions, overrides: list[str] | None = None, **own: Any) -> None:
        run_study(partial(choose, **own), overrides, options)

    command.__signature__ = signature(choose)  # pyright: ignore[reportFunctionMemberAccess]
    command.__doc__ = choose.__doc__
    return with_options(StudyOptions)(command)


def run_study(choose: "Callable[..., Choice]", overrides: list[str] | None, options: StudyOptions) -> None:
    """Plan an experiment, train the runs that are missing, write its report and print the results; exit with its code.

    choose receives the overrides except the launcher's, and returns the experiment and the overrides of its runs.
    """
    from albert_lab.cli.train import train_study
    from albert_lab.studies.plan import plan_study

    how, rest = options.take_launcher(overrides)
    experiment, rest = choose(overrides=rest)
    plan = plan_study(experiment, rest, task_names(options.tasks))
    _note_wide_embeddings(plan)
    if options.dry_run:
        _print_price(plan, options)
        return
    if options.list_folders:
        print_folders([plan], as_json=options.as_json)
        return
    plan = options.reset(plan)
    code, analysis = train_study(plan, how)
    if analysis:
        from albert_lab.report import closing, report

        folder = plan.report_folder
        print(report.as_json(folder.name, analysis) if options.as_json else closing.text(folder, analysis))
        exit_on(options.fail_on, {verdict.decision for verdict in analysis.verdicts}, code)
    raise typer.Exit(code)


def _note_wide_embeddings(plan: "Plan") -> None:
    """Say so before anything else where E is above H, as with the paper's sizes at a small scale."""
    configs = [item.point.config for item in plan.points]
    wide = {(config.embedding_size, config.model.hidden_size): config.scale.name for config in configs}
    if too_wide := {pair: scale for pair, scale in wide.items() if pair[0] > pair[1]}:
        of_width: dict[int, list[str]] = {}
        for e, h in sorted(too_wide):
            of_width.setdefault(h, []).append(str(e))
        sizes = "; ".join(f"embedding_size={','.join(es)} above model.hidden_size={h}" for h, es in of_width.items())
        scale = next(iter(too_wide.values()))
        to_stderr(
            f"{sizes}. The paper's table of E, at the sizes of this scale: albert-lab embedding-size scale={scale}"
        )


def _print_price(plan: "Plan", options: StudyOptions) -> None:
    from albert_lab.studies import prices

    costs = prices.costs(plan, options.on)
    print(json.dumps(costs.as_dict(), indent=2) if options.as_json else prices.by_row(costs).as_text())


def print_folders(plans: "Sequence[Plan]", *, as_json: bool) -> None:
    """Print the folder and the state of each run, after those of the runs that others start from.

    As JSON with the row of each point as in points.csv; is_row is false for a run that is not in the table.
    """
    from albert_lab.runs import job, states
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
        | job.as_columns(item.run.folder)
        | item.point.as_columns()
        for item in (*others, *points)
    ]
    lines = [f"{row['state']:<8} {row['folder']}" + (f"  {row['place']}" if row["place"] else "") for row in rows]
    print(json.dumps(rows, indent=2) if as_json else "\n".join(dict.fromkeys(lines)))


def exit_on(fail_on: str | None, decisions: Collection[str], code: int) -> None:
    """Exit with the code of --fail-on if nothing else went wrong and a claim has that verdict."""
    if not code and fail_on and fail_on.replace("-", " ") in decisions:
        to_stderr(f"a claim is {fail_on.replace('-', ' ')}")
        raise typer.Exit(NOT_SUPPORTED)


def _pretrain(overrides: Overrides = None) -> "Choice":
    """Pre-train one model and score it on held-out text."""
    from albert_lab.studies.plan import one_model

    return one_model(overrides or [])


def _sweep(overrides: SweepOverrides = None) -> "Choice":
    """Train a model for each combination of the given values and report all of them in one table."""
    from albert_lab.studies.experiment import from_overrides

    return from_overrides(overrides or [])


def _run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A YAML file like those in experiments/; docs/your-own-study.md lists its keys."
        ),
    ],
    overrides: StudyOverrides = None,
) -> "Choice":
    """Run the study of an experiment file of your own."""
    from albert_lab.studies.experiment import include_and_read

    return include_and_read(file), overrides or []


def _continue(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A finished or imported run, by name or folder.")],
    overrides: SweepOverrides = None,
) -> "Choice":
    """Continue the pre-training of a run or an imported model, with a fresh optimizer state, at its scale."""
    from albert_lab.studies.starts import continue_run

    return continue_run(run, overrides or []), overrides or []


def _named(name: str) -> "Callable[..., Choice]":
    def choose(overrides: StudyOverrides = None) -> "Choice":
        from albert_lab.studies.experiment import named

        return named(name), overrides or []

    return choose


def _helps(file: Path) -> tuple[str, str]:
    places = re.search(r"(Table|Figure).*", shipped.line(file, "source"))
    title = shipped.line(file, "title") or file.stem
    if places is None:
        return f"{title}.", f"Run the study “{title}”."
    return f"{places.group()}: {title}.", f"Reproduce {places.group()} of the paper: “{title}”."


def _add(
    name: str,
    choose: "Callable[..., Choice]",
    *lines: str,
    panel: str = STUDIES,
    listed: str | None = None,
    first: str | None = None,
) -> None:
    """Add the command of a study, with examples, its line in the list of commands, and the first line of its help."""
    first = first or choose.__doc__
    help = f"{first}\n\n{_WRITES}"
    app.command(name, rich_help_panel=panel, epilog=examples(*lines), help=help, short_help=listed or first)(
        _study(choose)
    )


_add(
    "pretrain",
    _pretrain,
    "albert-lab pretrain",
    "albert-lab pretrain sharing=not-shared corpus=files corpus.path=my-texts --tasks sst2",
    panel=START,
)
_add(
    "sweep",
    _sweep,
    "albert-lab sweep embedding_size=64,128,256,768",
    "albert-lab sweep sharing=all-shared,not-shared seed=0,1,2 --jobs 2",
    panel=START,
)
_add("run", _run, "albert-lab run my-study.yaml", "albert-lab run my-study.yaml scale=smoke --dry-run")
_add(
    "continue",
    _continue,
    "albert-lab continue RUN corpus=files corpus.path=my-texts budget.value=1000",
    "albert-lab continue RUN optimizer.learning_rate=1e-4,1e-3 seed=0,1,2",
)
for _file in shipped.in_order():
    _listed, _first = _helps(_file)
    _add(
        _file.stem,
        _named(_file.stem),
        f"albert-lab {_file.stem}",
        f"albert-lab {_file.stem} scale=smoke seed=0,1,2 --jobs 2",
        panel=START if _file.stem == "sop-vs-nsp" else TABLES,
        listed=_listed,
        first=_first,
    )
