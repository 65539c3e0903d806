"""Commands on configurations and single models: show, count, export, import."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from albert_lab.cli.options import MODELS, Json, Overrides, RunOrFolder, option, shown
from albert_lab.messages import to_stderr, to_stdout

app = typer.Typer()
config_app = typer.Typer(help="Show the configuration and its options.", no_args_is_help=True)
app.add_typer(config_app, name="config", rich_help_panel=MODELS)


@app.command(
    **shown(
        MODELS,
        "albert-lab params model=xxlarge scale=paper",
        "albert-lab params sharing=not-shared",
    )
)
def params(overrides: Overrides, as_json: Json = False) -> None:
    """Show parameters, and FLOPs per token, of a configuration or of each of a sweep.

    layers counts each shared block once; heads are those of pre-training.
    """
    from tabulate import tabulate

    from albert_lab.config.compose import axes, compose, expand
    from albert_lab.model.counts import count

    values_of = axes(overrides)
    swept = [key for key, values in values_of.items() if len(values) > 1]
    rows = []
    for point in expand(values_of):
        config = compose({key: values_of[key][text] for key, text in point.items()})
        counts = count(config)
        one_model = f"{config.model.name} E={config.embedding_size} {config.sharing.name}"
        label = " ".join(f"{key}={point[key]}" for key in swept) or one_model
        rows.append({"configuration": label, "total": counts.total} | asdict(counts))
    if as_json:
        to_stdout(json.dumps(rows, indent=2))
        return
    lines = [[heading.replace("_", "\n") for heading in rows[0]]]
    for row in rows:
        label, *numbers = row.values()
        lines.append([label, *map(_in_digits, numbers)])
    aligned = ("left", *["right"] * (len(rows[0]) - 1))
    # headings as a row, which tabulate does not pad
    to_stdout(tabulate(lines, tablefmt="plain", disable_numparse=True, colalign=aligned))


def _in_digits(number: float) -> str:
    """A count in full, FLOPs by three digits, so that three rows fit 100 columns."""
    return f"{number:.2e}" if isinstance(number, float) else f"{number:,}"


@config_app.command(
    "show",
    **shown(MODELS, "albert-lab config show", "albert-lab config show scale=paper model=large"),
)
def config_show(overrides: Overrides) -> None:
    """Show the resolved configuration of one run."""
    from omegaconf import OmegaConf

    from albert_lab.config.compose import load
    from albert_lab.config.section import complete

    to_stdout(OmegaConf.to_yaml(complete(load(overrides))).rstrip())


@config_app.command("list", **shown(MODELS, "albert-lab config list"))
def config_list() -> None:
    """List all groups and their options (`group=option`)."""
    from albert_lab.config.compose import groups

    for group, options in groups().items():
        to_stdout(f"{group}: {' '.join(options)}")


@app.command(
    **shown(MODELS, "albert-lab export RUN exported", "albert-lab export lab/runs/NAME my-model")
)
def export(
    run: RunOrFolder,
    target: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to write; must not exist yet or be empty.")
    ],
) -> None:
    """Export a run as a folder that transformers loads, with a model card.

    It is a BERT if no layer is shared and E = H, else an ALBERT; it counts as written if
    transformers computes the same. Then `hf upload REPO DIR` uploads it.
    """
    from albert_lab.interop.export import export

    to_stderr(f"written as {export(run, target, to_stderr)}")
    to_stdout(str(target))


@app.command(
    "import",
    **shown(
        MODELS,
        "albert-lab import albert-base-v2",
        "albert-lab import my-bert --name my-bert corpus=sotu",
    ),
)
def import_(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder of an ALBERT or BERT in the Hugging Face layout."
        ),
    ],
    overrides: Overrides,
    name: Annotated[
        str | None, option("The model's name in that of the run; by default the folder's.")
    ] = None,
) -> None:
    """Import a published or exported model as a run."""
    from albert_lab.interop.loading import import_folder

    to_stdout(str(import_folder(source, overrides, name, to_stderr)))
