"""Commands that exchange models with other tools."""

import json
from pathlib import Path
from typing import Annotated

import typer

from albert_lab.cli.options import MODELS, Json, Overrides, examples, settings
from albert_lab.messages import to_stderr

app = typer.Typer()
RunOrFolder = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run by its name (`albert-lab status` lists them), or the folder of a model."),
]
Source = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an ALBERT or BERT in the Hugging Face layout.")]


@app.command(
    rich_help_panel=MODELS,
    epilog=examples(
        "albert-lab export RUN exported",
        "albert-lab export RUN exported --layout albert-lab",
    ),
)
def export(
    run: RunOrFolder,
    target: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; must not exist yet or be empty.")],
    layout: Annotated[
        str, typer.Option("--layout", help="auto (albert or bert, depending on sharing), albert, bert or albert-lab.")
    ] = "auto",
) -> None:
    """Export a run as a folder that transformers loads, with a model card.

    It counts as written if transformers computes the same. Then `hf upload REPO DIR` uploads it.
    """
    from albert_lab.interop.export import export

    to_stderr(f"written in the layout {export(run, target, layout, to_stderr)}")
    print(target)


@app.command(
    "import",
    rich_help_panel=MODELS,
    epilog=examples("albert-lab import albert-base-v2", "albert-lab import my-bert --name my-bert corpus=sotu"),
)
def import_(
    source: Source,
    overrides: Overrides = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Model name to use in the run's name; by default the folder's.")
    ] = None,
) -> None:
    """Import a published or exported model as a run."""
    from albert_lab.interop.importing import import_folder

    print(import_folder(source, overrides or [], name, to_stderr))


@app.command(
    rich_help_panel=MODELS,
    epilog=examples("albert-lab evaluate RUN --corpus my-texts", "albert-lab evaluate exported corpus=sotu --json"),
)
def evaluate(
    run: RunOrFolder,
    overrides: Annotated[
        list[str] | None,
        settings(
            "Settings of the text and its scoring, such as corpus.dev_share=0.5, evaluation.num_pairs=500 or"
            " max_sequence_length=64; settings that the model determines cannot be changed."
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            "--corpus",
            metavar="NAME|PATH",
            help="Score on all of this text: a corpus by its name, or a file, a folder or a glob of your own. By"
            " default, and if the run was trained on it, on the held-out documents of the run's own corpus.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Score a run or model folder on text: MLM, NSP and SOP accuracy.

    Prints a table with intervals; writes only the prepared text, below lab/cache/.
    """
    from albert_lab.config.compose import groups, quoted
    from albert_lab.interop.evaluation import evaluate

    chosen = []
    if corpus is not None:
        is_option = corpus in groups()["corpus"]
        chosen = [f"corpus={corpus}"] if is_option else ["corpus=files", f"corpus.path={quoted(corpus)}"]
    evaluation = evaluate(run, [*chosen, *(overrides or [])], to_stderr, whole=corpus is not None)
    print(json.dumps(evaluation.as_dict(), indent=2) if as_json else evaluation.as_text())
