"""Commands that show configurations and their cost."""

import json
from typing import Annotated

import typer

from albert_lab.cli.options import MODELS, Json, Overrides, examples

app = typer.Typer()
config_app = typer.Typer(help="Show the configuration and its options.", no_args_is_help=True)
app.add_typer(config_app, name="config", rich_help_panel=MODELS)


@app.command(
    rich_help_panel=MODELS,
    epilog=examples("albert-lab params model=xxlarge scale=paper", "albert-lab params --paper"),
)
def params(
    overrides: Overrides = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="All parameter counts that the paper prints, next to ours.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show parameters, FLOPs and memory of a configuration without building it."""
    from albert_lab.cost import counts

    if paper and overrides:
        raise typer.BadParameter("--paper takes no settings")
    sizes = counts.paper_counts() if paper else counts.sizes(overrides or [])
    print(json.dumps(sizes.as_dict(), indent=2) if as_json else sizes.as_text())


@config_app.command("show", epilog=examples("albert-lab config show", "albert-lab config show scale=paper model=large"))
def config_show(overrides: Overrides = None, as_json: Json = False) -> None:
    """Show the resolved configuration of one run."""
    from omegaconf import OmegaConf

    from albert_lab.config.compose import load
    from albert_lab.config.section import complete

    config = load(overrides or [])
    content = complete(config)
    if as_json:
        print(json.dumps(content, indent=2))
        return
    print(OmegaConf.to_yaml(OmegaConf.create(content)), end="")


@config_app.command("list", epilog=examples("albert-lab config list", "albert-lab config list --json"))
def config_list(as_json: Json = False) -> None:
    """List all groups and their options (`group=option`)."""
    from albert_lab.config.compose import groups

    options_of = groups()
    print(
        json.dumps(options_of, indent=2)
        if as_json
        else "\n".join(f"{group}: {' '.join(options_of[group])}" for group in options_of)
    )
