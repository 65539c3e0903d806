"""Commands of text and tasks: prepare text, fine-tune a run."""

import json
from typing import Annotated

import typer

from albert_lab.cli.options import MODELS, Json, Overrides, RunOrFolder, option, shown
from albert_lab.messages import to_stderr, to_stdout

app = typer.Typer()
data_app = typer.Typer(help="Prepare text ahead of runs.", no_args_is_help=True)
app.add_typer(data_app, name="data", rich_help_panel=MODELS)


@app.command(
    **shown(
        MODELS,
        "albert-lab finetune RUN --tasks sst2,mnli --seeds 0,1,2",
        "albert-lab finetune RUN --tasks my-task.yaml",
    )
)
def finetune(
    run: RunOrFolder,
    tasks: Annotated[
        str, option("Tasks: names, or .yaml files of your own.", "NAME,...")
    ] = "squad1,squad2,mnli,sst2,race",
    seeds: Annotated[
        str | None, option("Fine-tuning seeds; by default those of the scale.", "N,...")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fine-tune a finished run on tasks and print the scores; finished fine-tunings are not
    repeated.
    """
    from albert_lab.runs.finetunings import describe, finetune_run

    chosen = None if seeds is None else _read_seeds(seeds)
    records = finetune_run(run, tasks.split(","), chosen, to_stderr)
    if as_json:
        to_stdout(json.dumps([record.model_dump() for record in records], indent=2))
        return
    for record in records:
        to_stdout(describe(record))


def _read_seeds(text: str) -> tuple[int, ...]:
    from pydantic import TypeAdapter, ValidationError

    from albert_lab.config.section import SEEDS, DistinctSeeds
    from albert_lab.errors import ConfigError

    try:
        return TypeAdapter(DistinctSeeds).validate_python(text.split(","))
    except ValidationError as error:
        raise ConfigError(
            f"--seeds {text}: different whole numbers below {SEEDS}, as in 0,1,2"
        ) from error


@data_app.command(
    "prepare",
    **shown(
        MODELS,
        "albert-lab data prepare",
        "albert-lab data prepare corpus=files corpus.path=my-texts",
    ),
)
def data_prepare(overrides: Overrides) -> None:
    """Clean and tokenize a corpus into shards on disk, and print their folder; finished work is
    reused.
    """
    from albert_lab.config.compose import load
    from albert_lab.data.prepare import prepare

    to_stdout(str(prepare(load(overrides), to_stderr)))
