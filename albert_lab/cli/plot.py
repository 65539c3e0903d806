"""Commands that draw figures: of reports, of runs, and of encoders from elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from albert_lab.cli.options import STUDIES, Jobs, Overrides, examples, note
from albert_lab.studies.figure import FIGURES

app = typer.Typer()
plot_app = typer.Typer(help="Draw the figures: PNG and SVG.", no_args_is_help=True)
app.add_typer(plot_app, name="plot", rich_help_panel=STUDIES)


@plot_app.command(
    "layer-similarity",
    epilog=examples(
        "albert-lab plot layer-similarity scale=smoke",
        "albert-lab plot layer-similarity --model my-bert --model my-albert corpus=files corpus.path=texts",
    ),
)
def layer_similarity(
    overrides: Overrides = None,
    run: Annotated[list[str] | None, typer.Option("--run", help="A finished run: its name or folder.")] = None,
    model: Annotated[
        list[Path] | None, typer.Option("--model", help="A folder in the Hugging Face layout (needs transformers).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to draw runs and models; layer-similarity/ in reports.")
    ] = None,
    jobs: Jobs = 1,
) -> None:
    """Figure 1: what each layer changes. Of runs and models; with neither, makes ALBERT and BERT and their report.

    Settings say on which corpus models are measured; runs are measured on their own held-out set, once.
    """
    from albert_lab import paths
    from albert_lab.runs import layers
    from albert_lab.studies import experiment

    if not run and not model:
        from albert_lab.cli.studies import execute

        execute(experiment.named(experiment.LAYERS_FIGURE), overrides or [], jobs=jobs)
    from albert_lab.config.compose import load
    from albert_lab.figures.files import compare_layers
    from albert_lab.interop import encoders
    from albert_lab.runs import run as runs

    config = load(overrides or [])
    tables = [layers.table([runs.find(name) for name in run], note)] if run else []
    tables += [encoders.layers(folder, config, note) for folder in model or []]
    for file in compare_layers(tables, out or paths.reports() / experiment.LAYERS_FIGURE):
        print(file)


def _drawing(name: str) -> Callable[[Path | None], None]:
    def command(
        folder: Annotated[
            Path | None,
            typer.Argument(file_okay=False, help="A report folder; the newest that has this figure unless given."),
        ] = None,
    ) -> None:
        from albert_lab.errors import ConfigError
        from albert_lab.figures import files as plots

        chosen = folder or plots.newest(name)
        files = plots.draw(chosen, name)
        if not files:
            raise ConfigError(f"{chosen} holds nothing that the figure {name} could show")
        for file in files:
            print(file)

    return command


for _name, _figure in FIGURES.items():
    if _name != "layer-similarity":  # a command of its own, above
        plot_app.command(
            _name,
            help=_figure.title,
            epilog=examples(f"albert-lab plot {_name}", f"albert-lab plot {_name} reports/laptop-sotu/sharing"),
        )(_drawing(_name))
