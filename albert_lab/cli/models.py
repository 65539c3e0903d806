"""Commands that show configurations and their cost."""

import json
from pathlib import Path
from typing import Annotated

import typer

from albert_lab.cli.options import MODELS, Json, Overrides, examples
from albert_lab.messages import to_stderr

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


@app.command(
    rich_help_panel=MODELS,
    epilog=examples(
        "albert-lab speed",
        "albert-lab speed scale=laptop model=small sharing=all-shared,not-shared",
        "albert-lab speed --report lab/reports/overnight-sotu/sharing",
    ),
)
def speed(
    overrides: Overrides = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Measurements of each configuration.")] = 7,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.01, max=3600, help="Seconds of training and of inference per round.")
    ] = 0.5,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FOLDER",
            file_okay=False,
            help="Measure the rows of this report, and test its claims on throughput with the rounds.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure throughput, utilisation and memory of configurations, in interleaved rounds.

    Without a sweep, it compares BERT-base and ALBERT-base at the sizes of the scale. Name other models as in
    `model=BERT-large,ALBERT-large`. All are in memory at once. If a step is slow, lower batch_size.

    With `--report`, the configurations are those of a report's rows, with the machine settings of its first run. The
    rounds are kept in the report, which is rebuilt.
    """
    from albert_lab.cost import benchmark
    from albert_lab.studies.compared import configurations
    from albert_lab.studies.execute import SOME_FAILED

    if report:
        if overrides or as_json:
            raise typer.BadParameter("--report takes neither settings nor --json")
        _measure_report(report, rounds, seconds)
        return
    measured = benchmark.run(configurations(overrides or []), number=rounds, seconds=seconds, say=to_stderr)
    print(json.dumps(measured.as_dict(), indent=2) if as_json else measured.as_text())
    if measured.num_failed:
        raise typer.Exit(SOME_FAILED if measured.num_failed < len(measured.lines) else 1)


def _measure_report(folder: Path, number: int, seconds: float) -> None:
    from albert_lab.errors import ConfigError
    from albert_lab.report.report import rebuild
    from albert_lab.studies import side_by_side, study

    records = study.read(folder).examples
    if not records:
        raise ConfigError(f"{folder} has no finished run: nothing to measure")
    side_by_side.write(folder, side_by_side.measure_rows(records, number=number, seconds=seconds, say=to_stderr))
    print(rebuild(folder))


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
