"""Commands that draw figures of reports, of runs, and of models from other tools."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import STUDIES, examples, figure_folder
from albert_lab.messages import to_stderr
from albert_lab.studies.figure import FIGURES

if TYPE_CHECKING:  # it loads pydantic, which the help does not need
    from albert_lab.training.layer_numbers import Layer

LAYERS = "layer-similarity"

app = typer.Typer()
plot_app = typer.Typer(
    help="Draw a figure of finished results as PNG and SVG.\n\nThe files go to --out, or into the report that you"
    " name, or else below lab/figures/, and their paths are printed. Nothing is trained.",
    epilog=examples(
        "albert-lab plot learning-curves",
        "albert-lab plot learning-curves lab/reports/laptop-sotu/sop-vs-nsp --out figures",
    ),
    no_args_is_help=True,
)
app.add_typer(plot_app, name="plot", rich_help_panel=STUDIES)

Out = Annotated[
    Path | None, figure_folder("Draw into this folder; by default the report that you name, or else lab/figures/.")
]


@plot_app.command(
    LAYERS,
    help="Figure 1: how much each layer changes its input, in reports, runs and models.",
    epilog=examples(
        "albert-lab plot layer-similarity",
        "albert-lab plot layer-similarity RUN my-bert my-albert corpus=files corpus.path=texts",
        "albert-lab plot layer-similarity lab/reports/overnight-sotu/layer-similarity --out figures",
    ),
)
def layer_similarity(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|FOLDER|KEY=VALUE",
            help="Runs, reports and model folders (Hugging Face layout) to draw, and settings, such as the corpus to"
            " measure models on. By default: the newest report with layers.",
        ),
    ] = None,
    out: Out = None,
) -> None:
    """Draw Figure 1 from existing results."""
    from albert_lab.errors import ConfigError

    sources = [text for text in arguments or [] if "=" not in text]
    settings = [text for text in arguments or [] if "=" in text]
    if settings and not sources:
        raise ConfigError(f"{' '.join(settings)}: name the models that are measured on this text")
    for file in _compare(sources, settings, out) if sources else _draw(LAYERS, None, out):
        print(file)


def _compare(sources: Sequence[str], settings: Sequence[str], out: Path | None) -> list[Path]:
    """Draw the layers of the named runs, reports and model folders in one figure."""
    from albert_lab.config.compose import load
    from albert_lab.errors import ConfigError
    from albert_lab.figures.files import compare_layers, draw
    from albert_lab.interop import encoders
    from albert_lab.runs import layers
    from albert_lab.runs import run as runs
    from albert_lab.studies import study

    folders = list(dict.fromkeys(runs.find(source).resolve() for source in sources))
    reports = [folder for folder in folders if (folder / study.STUDY).is_file()]
    own = [folder for folder in folders if folder in reports or (folder / runs.RUN_FILE).is_file()]
    if settings and own:
        reason = (
            "settings choose the text that models from other tools are measured on; runs and reports have their own"
        )
        if len(own) == len(folders):
            raise ConfigError(f"{' '.join(settings)}: {reason}")
        to_stderr(reason)
    runs_of = {folder: study.read(folder).runs for folder in reports}
    for folder in reports:
        if not any(run.layers for run in runs_of[folder]):
            raise ConfigError(f"{folder} has no data for the figure {LAYERS}: its layers were not measured")
    if reports and len(folders) == 1:
        return draw(reports[0], LAYERS, out)
    config = load(settings)
    measured: list[tuple[str, Sequence[Layer]]] = []
    for folder in folders:
        if folder in reports:
            measured += [(run.name, run.layers) for run in runs_of[folder] if run.layers]
        elif folder in own:
            measured.append((folder.name, layers.find_or_measure(folder, to_stderr)))
        else:
            measured.append(encoders.layers(folder, config, to_stderr))
    return compare_layers(measured, out or paths.figures())


def _draw(name: str, folder: Path | None, out: Path | None) -> list[Path]:
    """Draw a figure of a report, of the newest one that has it unless the user names one."""
    from albert_lab.errors import ConfigError
    from albert_lab.figures import files as plots

    chosen = folder or plots.newest(name)
    to_stderr(f"{name} of the report {chosen}")
    # If the user named no report, the newest may be a published one, which must not change.
    drawn = plots.draw(chosen, name, out or (None if folder else paths.figures()))
    if not drawn:
        raise ConfigError(f"{chosen} has no data for the figure {name}: it needs {FIGURES[name].needs}")
    return drawn


def _drawing(name: str) -> Callable[[Path | None, Path | None], None]:
    def command(
        folder: Annotated[
            Path | None,
            typer.Argument(file_okay=False, help="A report folder; by default the newest with this figure."),
        ] = None,
        out: Out = None,
    ) -> None:
        for file in _draw(name, folder, out):
            print(file)

    return command


# Studies of figures whose names differ from their study's, for the examples.
_STUDIES = {
    "learning-curves": "sop-vs-nsp",
    "scores-by-setting": "dropout",
    "sharing-tradeoff": "sharing",
    "speed": "model-sizes",
}

for _name, _figure in FIGURES.items():
    if _name != LAYERS:  # a command of its own, above
        plot_app.command(
            _name,
            help=_figure.title,
            epilog=examples(
                f"albert-lab plot {_name}",
                f"albert-lab plot {_name} lab/reports/laptop-sotu/{_STUDIES.get(_name, _name)}",
            ),
        )(_drawing(_name))
