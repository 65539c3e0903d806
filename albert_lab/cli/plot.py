"""The command that draws figures of reports, of runs, and of models from other tools."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import STUDIES, examples, figure_folder
from albert_lab.messages import to_stderr

if TYPE_CHECKING:  # it loads pydantic, which the help does not need
    from albert_lab.training.layers import Layer

LAYERS, CLAIMS = "layer-similarity", "claims"
FEW = 4  # runs that are drawn if none is named

app = typer.Typer()


@app.command(
    rich_help_panel=STUDIES,
    epilog=examples(
        "albert-lab plot layer-similarity",
        "albert-lab plot layer-similarity RUN my-bert my-albert corpus=files corpus.path=texts",
        "albert-lab plot learning-curves lab/reports/laptop-sotu/sop-vs-nsp --out figures",
        "albert-lab plot claims reports --out reports",
    ),
    no_args_is_help=True,
)
def plot(
    figure: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE",
            help="learning-curves, scores-by-setting (such as E), sharing-tradeoff, layer-similarity (Figure 1),"
            " ladder-trend, or claims: the paper's effects beside those of all reports.",
        ),
    ],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REPORT|RUN|FOLDER|KEY=VALUE",
            help="A report; by default the newest with this figure. For claims, a folder of reports. For"
            " layer-similarity also runs and model folders (Hugging Face layout), and settings, such as the corpus to"
            " measure models on.",
        ),
    ] = None,
    out: Annotated[
        Path | None, figure_folder("Draw into this folder; by default the report that you name, or else lab/figures/.")
    ] = None,
) -> None:
    """Draw a figure of finished results as PNG and SVG, and print the paths. Nothing is trained."""
    from albert_lab.errors import ConfigError
    from albert_lab.figures import figures

    if figure not in (*figures.FIGURES, CLAIMS):
        raise ConfigError(f"{figure} is no figure (allowed: {', '.join((*figures.FIGURES, CLAIMS))})")
    named = sources or []
    if figure == LAYERS:
        files = _layers(named, out)
    elif len(named) > 1:
        raise ConfigError(f"{figure} takes one folder, not {len(named)}: {' '.join(named)}")
    elif figure == CLAIMS:
        root = Path(named[0]) if named else paths.published()
        files = figures.draw_claims(root, out or paths.figures())
    else:
        files = _of_report(figure, Path(named[0]) if named else None, out)
    for file in files:
        print(file)


def _of_report(figure: str, named: Path | None, out: Path | None) -> list[Path]:
    """Draw a figure of a report: of the newest one that has it, unless the user names one."""
    from albert_lab.figures import figures

    folder = named or figures.newest(figure)
    to_stderr(f"{figure} of the report {folder}")
    # If the user named no report, the newest may be a published one, which must not change.
    return figures.draw(folder, figure, out or named or paths.figures())


def _layers(arguments: list[str], out: Path | None) -> list[Path]:
    """Draw the layers of the named runs, reports and model folders in one figure; else those of the newest results."""
    from albert_lab.config.compose import load
    from albert_lab.errors import ConfigError
    from albert_lab.figures import figures
    from albert_lab.interop import encoders
    from albert_lab.runs import layers
    from albert_lab.runs import run as runs
    from albert_lab.studies import study

    sources, settings = ([text for text in arguments if ("=" in text) is is_setting] for is_setting in (False, True))
    if not sources:
        if settings:
            raise ConfigError(f"{' '.join(settings)}: name the models that are measured on this text")
        own = figures.find(LAYERS, paths.reports())
        records = sorted(paths.runs().glob(f"*/{runs.RECORD}"), key=lambda file: -file.stat().st_mtime)
        finished = [] if own else [record.parent for record in records[:FEW]]
        if not finished:
            return _of_report(LAYERS, None, out)
        to_stderr(f"no report has layers: the newest runs are drawn, {', '.join(folder.name for folder in finished)}")
        sources = [str(folder) for folder in finished]
    folders = list(dict.fromkeys(runs.find(source).resolve() for source in sources))
    reports = [folder for folder in folders if (folder / study.STUDY).is_file()]
    own_runs = [folder for folder in folders if (folder / runs.RUN_FILE).is_file()]
    if settings and len(own_runs) + len(reports) == len(folders):
        raise ConfigError(f"{' '.join(settings)}: only models from other tools take settings; runs have their own")
    if reports and len(folders) == 1:
        return _of_report(LAYERS, reports[0], out)
    config, measured = load(settings), list[tuple[str, "tuple[Layer, ...]"]]()
    for folder in folders:
        if folder in reports:
            measured += [(run.name, run.layers) for run in study.read(folder).runs if run.layers]
        elif folder in own_runs:
            measured.append((folder.name, layers.find_or_measure(folder, to_stderr)))
        else:
            name, of_model = encoders.layers(folder, config, to_stderr)
            measured.append((name, tuple(of_model)))
    return figures.compare_layers(measured, out or paths.figures())
