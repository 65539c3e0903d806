"""Commands of the downstream tasks: fine-tune a run, score predictions, average several fine-tunings."""

import json
from pathlib import Path
from typing import Annotated

import typer

from albert_lab.cli.options import DOWNSTREAM, Json, TaskOverrides, examples, task_names
from albert_lab.messages import to_stderr

app = typer.Typer()

RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's name, as `albert-lab status` shows it, or folder.")
]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A file of conf/task/ by its name, or your own .yaml.")]


@app.command(
    rich_help_panel=DOWNSTREAM,
    epilog=examples(
        "albert-lab finetune RUN --tasks sst2,mnli --seeds 0,1,2",
        "albert-lab finetune RUN --tasks mnli settings.laptop.steps=400",
    ),
)
def finetune(
    run: RunName,
    overrides: TaskOverrides = None,
    tasks: Annotated[
        str, typer.Option(metavar="NAME,...", help="Tasks: names, or .yaml files of your own.")
    ] = "squad1,squad2,mnli,sst2,race",
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="N,...", help="Fine-tuning seeds; by default those of the scale.")
    ] = None,
    random: Annotated[
        bool, typer.Option("--random", help="Start from random weights in the run's shape, as a baseline.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fine-tune a finished run on tasks and print the scores; finished fine-tunings are not repeated."""
    from albert_lab.runs import single_run

    wanted = single_run.Wanted(
        tasks=task_names(tasks) or [],
        seeds=None if seeds is None else single_run.read_seeds(seeds),
        overrides=overrides or [],
        is_random=random,
    )
    records = single_run.finetune_run(run, wanted, to_stderr)
    print(json.dumps([item.model_dump() for item in records], indent=2) if as_json else single_run.as_text(records))


@app.command(
    rich_help_panel=DOWNSTREAM,
    epilog=examples(
        "albert-lab ensemble mnli RUN RUN --best 3",
        "albert-lab ensemble squad2 RUN --which last --output predictions.json",
    ),
)
def ensemble(
    task: TaskName,
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs that were fine-tuned on the task.")],
    which: Annotated[str, typer.Option("--which", help="Which checkpoint of each fine-tuning: best or last.")] = "best",
    best: Annotated[
        int | None, typer.Option("--best", min=1, help="Average only this many fine-tunings, the best on dev.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", help="Where to write the predictions.")] = None,
    as_json: Json = False,
) -> None:
    """Average the scores of all fine-tunings of runs on a task, as the paper's ensembles do."""
    from albert_lab.runs import single_run

    averaged = single_run.ensemble_runs(task, runs, to_stderr, which=which, best=best, output=output)
    print(json.dumps(averaged, indent=2) if as_json else single_run.ensemble_text(averaged))
