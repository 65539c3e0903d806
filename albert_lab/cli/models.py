"""Commands that show configurations and their cost."""

import json

import typer

from albert_lab.cli.options import MODELS, Json, Overrides, examples

app = typer.Typer()
config_app = typer.Typer(help="Show the configuration and its options.", no_args_is_help=True)
app.add_typer(config_app, name="config", rich_help_panel=MODELS)


@app.command(
    rich_help_panel=MODELS,
    epilog=examples("albert-lab params model=xxlarge scale=paper", "albert-lab params scale=laptop sharing=not-shared"),
)
def params(overrides: Overrides = None, as_json: Json = False) -> None:
    """Show parameters, and FLOPs per token, of a configuration or of each of a sweep.

    layers counts each shared block once; heads are those of pre-training.
    """
    from tabulate import tabulate

    from albert_lab.config.compose import axes, expand, load
    from albert_lab.model.counts import count

    values_of = axes(overrides or [])
    swept = [key for key, values in values_of.items() if len(values) > 1]
    rows = []
    for point in expand(values_of):
        config = load([f"{key}={value}" for key, value in point.items()])
        label = " ".join(f"{key}={point[key]}" for key in swept)
        counts = count(config)
        row = {"configuration": label or f"{config.model.name} E={config.embedding_size} {config.sharing.name}"}
        row |= {part: getattr(counts, part) for part in ("embeddings", "layers", "pooler", "heads", "total")}
        row |= {"training FLOPs": round(counts.training_flops), "inference FLOPs": round(counts.inference_flops)}
        rows.append(row)
    print(json.dumps(rows, indent=2) if as_json else tabulate(rows, "keys", "simple", intfmt=","))


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
