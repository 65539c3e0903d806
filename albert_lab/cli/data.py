"""Commands that prepare text ahead of runs and fetch the data of downstream tasks."""

import json
from typing import Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import MODELS, Json, Overrides, examples, task_names
from albert_lab.messages import to_stderr

app = typer.Typer()
data_app = typer.Typer(help="Prepare text ahead of runs; fetch data of downstream tasks.", no_args_is_help=True)
app.add_typer(data_app, name="data", rich_help_panel=MODELS)


@data_app.command(
    "prepare",
    epilog=examples("albert-lab data prepare", "albert-lab data prepare corpus=files corpus.path=my-texts"),
)
def data_prepare(overrides: Overrides = None, as_json: Json = False) -> None:
    """Clean and tokenize a corpus into shards on disk; finished work is reused."""
    from albert_lab.config.compose import load
    from albert_lab.data.prepare import prepare
    from albert_lab.data.shards import read_meta

    folder = prepare(load(overrides or []), to_stderr)
    print(json.dumps({"folder": str(folder), **read_meta(folder)}, indent=2) if as_json else folder)


@data_app.command(
    "fetch",
    epilog=examples("albert-lab data fetch glue", "albert-lab data fetch sst2 hub.path=my-copy-of-the-data-set"),
)
def data_fetch(
    name: Annotated[str, typer.Argument(help="glue, squad, race, a single task, or a corpus of the Hub.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings of the task's file or of the corpus.")
    ] = None,
) -> None:
    """Download data sets from the Hugging Face Hub into the official file formats."""
    from albert_lab.tasks.fetch import fetch

    for file in fetch(name, paths.tasks_data(), to_stderr, overrides or []):
        print(file)


@data_app.command(
    "status", epilog=examples("albert-lab data status", "albert-lab data status --tasks my-task.yaml,mnli --json")
)
def data_status(
    tasks: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only these tasks: names, or .yaml files of your own.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show which tasks have their data, what is missing, and where it is expected.

    With --tasks, exit code 4 if one of them cannot be used.
    """
    from albert_lab.errors import MissingDataError
    from albert_lab.tasks.fetch import status, status_text

    listed = status(paths.tasks_data(), task_names(tasks))
    print(json.dumps(listed, indent=2) if as_json else status_text(listed, paths.tasks_data()))
    unusable = [row["task"] for row in listed if not {"train", "dev"} <= row["examples"].keys()]
    if tasks and unusable:
        raise MissingDataError(f"without train or dev examples: {', '.join(unusable)}")
