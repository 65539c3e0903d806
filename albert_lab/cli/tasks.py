"""Commands of text and tasks: prepare and fetch data, fine-tune a run, average several fine-tunings."""

import json
from typing import Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import DOWNSTREAM, MODELS, Json, Overrides, option, shown, task_names
from albert_lab.messages import to_stderr

app = typer.Typer()
data_app = typer.Typer(help="Prepare text ahead of runs; fetch data of downstream tasks.", no_args_is_help=True)
app.add_typer(data_app, name="data", rich_help_panel=MODELS)


@app.command(
    **shown(
        DOWNSTREAM,
        "albert-lab finetune RUN --tasks sst2,mnli --seeds 0,1,2",
        "albert-lab finetune RUN --tasks my-task.yaml",
    )
)
def finetune(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run by its name (see `albert-lab status`) or folder.")],
    tasks: Annotated[
        str, option("Tasks: names, or .yaml files of your own.", "NAME,...")
    ] = "squad1,squad2,mnli,sst2,race",
    seeds: Annotated[str | None, option("Fine-tuning seeds; by default those of the scale.", "N,...")] = None,
    as_json: Json = False,
) -> None:
    """Fine-tune a finished run on tasks and print the scores; finished fine-tunings are not repeated."""
    from albert_lab.runs.finetunings import describe, finetune_run

    records = finetune_run(run, tasks.split(","), _read_seeds(seeds), to_stderr)
    if as_json:
        print(json.dumps([record.model_dump() for record in records], indent=2))
        return
    for record in records:
        print(describe(record), flush=True)


def _read_seeds(text: str | None) -> list[int] | None:
    from albert_lab.config.section import SEEDS
    from albert_lab.errors import ConfigError

    seeds = [int(part) for part in (text or "").split(",") if part.isdecimal() and int(part) < SEEDS]
    if text is not None and len(set(seeds)) < len(text.split(",")):
        raise ConfigError(f"--seeds {text}: different whole numbers below {SEEDS} with commas between, as in 0,1,2")
    return seeds or None


@data_app.command(
    "prepare",
    **shown(MODELS, "albert-lab data prepare", "albert-lab data prepare corpus=files corpus.path=my-texts"),
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
    **shown(MODELS, "albert-lab data fetch glue", "albert-lab data fetch sst2 hub.path=my-copy-of-the-data-set"),
)
def data_fetch(
    name: Annotated[str, typer.Argument(help="glue, squad, race, or a single task.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings of the task's file, as hub.path=NAME."),
    ] = None,
) -> None:
    """Download data sets from the Hugging Face Hub into the official file formats."""
    from albert_lab.tasks.fetch import fetch

    print(*fetch(name, paths.tasks_data(), to_stderr, overrides or []), sep="\n")


@data_app.command(
    "status", **shown(MODELS, "albert-lab data status", "albert-lab data status --tasks my-task.yaml,mnli --json")
)
def data_status(
    tasks: Annotated[str | None, option("Only these tasks: names, or .yaml files of your own.", "NAME,...")] = None,
    as_json: Json = False,
) -> None:
    """Show which tasks have their data, what is missing, and where it is expected.

    With --tasks, exit code 4 if one of them cannot be used.
    """
    from albert_lab.errors import MissingDataError
    from albert_lab.tasks.fetch import status

    listed = status(paths.tasks_data(), task_names(tasks))
    for row in [] if as_json else listed:
        examples = (f"{split} {count:,}" for split, count in row["examples"].items())
        print("; ".join([f"{row['title']}: {', '.join(examples) or 'no data'}", *row["problems"].values()]))
    if as_json:
        print(json.dumps(listed, indent=2))
    unusable = [row["task"] for row in listed if not {"train", "dev"} <= row["examples"].keys()]
    if tasks and unusable:
        raise MissingDataError(f"without train or dev examples: {', '.join(unusable)}")
