"""Commands that prepare text ahead of the runs."""

import json

import typer

from albert_lab.cli.options import MODELS, Json, Overrides, examples, note

app = typer.Typer()
data_app = typer.Typer(help="Prepare text ahead of the runs.", no_args_is_help=True)
tokenizer_app = typer.Typer(help="Train a tokenizer by itself.", no_args_is_help=True)
app.add_typer(data_app, name="data", rich_help_panel=MODELS)
app.add_typer(tokenizer_app, name="tokenizer", rich_help_panel=MODELS)


@data_app.command(
    "prepare",
    epilog=examples("albert-lab data prepare", "albert-lab data prepare corpus=files corpus.path=my-texts"),
)
def data_prepare(overrides: Overrides = None, as_json: Json = False) -> None:
    """Read, clean and tokenize a corpus into shards on disk; nothing is done twice."""
    from albert_lab.config import load
    from albert_lab.data.shards import prepare, read_meta

    folder = prepare(load(overrides or []), note)
    print(json.dumps({"folder": str(folder), **read_meta(folder)}, indent=2) if as_json else folder)


@tokenizer_app.command(
    "train",
    epilog=examples(
        "albert-lab tokenizer train tokenizer.vocab_size=8000",
        "albert-lab tokenizer train corpus=files corpus.path=my-texts tokenizer.vocab_size=30000",
    ),
)
def tokenizer_train(overrides: Overrides = None) -> None:
    """Train the SentencePiece model of a configuration, and print where it is."""
    from albert_lab.config import load
    from albert_lab.data.tokenizer import find_or_train

    print(find_or_train(load(overrides or []), note))
