"""Commands on what is there already: rebuild, publish and compare reports, draw figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import START, STUDIES, Json, flag, option, settings, shown
from albert_lab.errors import ConfigError
from albert_lab.messages import to_stderr, to_stdout, visible

LAYERS = "layer-similarity"
CLAIMS = "claims"

app = typer.Typer()


@app.command(
    **shown(
        START,
        "albert-lab report lab/reports/laptop-sotu/sop-vs-nsp",
        "albert-lab report lab/reports/laptop-sotu/sop-vs-nsp --publish",
        "albert-lab report lab/reports",
    )
)
def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            file_okay=False,
            help="Reports; of a folder that contains reports, the scoreboard is rebuilt.",
        ),
    ],
    publish: Annotated[
        bool,
        flag(
            "--publish",
            "Copy into reports/ of the current folder, which git keeps, and to its scoreboard.",
        ),
    ] = False,
) -> None:
    """Rebuild reports (Markdown and HTML) and their pictures from the records."""
    from albert_lab.report import report as reports
    from albert_lab.report import scoreboard
    from albert_lab.studies import study

    for folder in folders:  # nothing is written if one of them is no report
        if publish or not scoreboard.holds_reports(folder):
            study.read(folder)
    for folder in folders:
        if publish:
            files = [scoreboard.publish(folder, paths.published())]
        elif scoreboard.holds_reports(folder):
            files = [scoreboard.write(folder)]
        else:
            file = reports.rebuild(folder)
            files = [file, file.with_name(reports.PAGE)]
        _print_files(files)


@app.command(
    **shown(
        STUDIES,
        "albert-lab compare reports/laptop-sotu/sop-vs-nsp lab/reports/laptop-sotu/sop-vs-nsp",
        "albert-lab compare before/sop-vs-nsp lab/reports/laptop-sotu/sop-vs-nsp --json",
    )
)
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", file_okay=False, help="A report.")],
    b: Annotated[
        Path,
        typer.Argument(
            metavar="B", file_okay=False, help="One of another scale, machine or version."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Compare two reports side by side; the intervals of differences take their runs for
    independent.
    """
    from albert_lab.analysis.analysis import compare_summaries, read
    from albert_lab.terminal.screen import compared

    first = read(a)
    second = read(b)
    table = compare_summaries(first.summary, second.summary)
    if table.empty:
        raise ConfigError(
            f"no row of {a} has the name and a score of a row of {b}: there is nothing to compare"
        )
    if as_json:
        to_stdout(str(table.reset_index().to_json(orient="records", indent=2)))
    else:
        to_stdout(f"A is {a}\nB is {b}\n{compared(first, second, table)}")
    if len({*first.held_out, *second.held_out}) > 1:
        to_stderr("the held-out texts differ: compare directions, not values")


@app.command(
    **shown(
        STUDIES,
        "albert-lab plot layer-similarity",
        "albert-lab plot layer-similarity RUN RUN",
        "albert-lab plot learning-curves lab/reports/laptop-sotu/sop-vs-nsp --out figures",
        "albert-lab plot claims reports --out reports",
    )
)
def plot(
    figure: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE",
            help="learning-curves, scores-by-setting (such as E), sharing-tradeoff, "
            "layer-similarity (Figure 1),"
            " or claims: those of the paper, with what all reports say of them.",
        ),
    ],
    sources: Annotated[
        list[str],
        settings(
            "REPORT|RUN",
            "A report; by default the newest with this figure. For claims, a folder of "
            "reports. For"
            " layer-similarity also runs, imported ones too.",
        ),
    ],
    out: Annotated[
        Path | None,
        option("Draw into this folder; by default the report that you name, or else lab/figures/."),
    ] = None,
) -> None:
    """Draw a figure of finished results as PNG and SVG, and print the paths. Nothing is trained."""
    from albert_lab.figures import figures

    known = (*figures.FIGURES, CLAIMS)
    if figure not in known:
        raise ConfigError(f"{figure} is no figure (allowed: {', '.join(known)})")
    if figure != LAYERS and len(sources) > 1:
        raise ConfigError(f"{figure} takes one folder, not {len(sources)}: {' '.join(sources)}")
    folder = Path(sources[0]) if sources else None
    if figure == LAYERS:
        files = _layers(sources, out)
    elif figure == CLAIMS:
        from albert_lab.report import scoreboard

        files = scoreboard.draw(folder or paths.published(), out or paths.home() / "figures")
    else:
        files = _of_report(figure, folder, out)
    _print_files(files)


def _print_files(files: Sequence[Path]) -> None:
    """Print the path of each file, a line a file whatever its name is."""
    to_stdout("\n".join(visible(str(file)) for file in files))


def _of_report(figure: str, named: Path | None, out: Path | None) -> list[Path]:
    """Draw a figure of a report: of the newest one that has it, unless the user names one."""
    from albert_lab.figures import figures
    from albert_lab.report import wording

    folder = named or figures.newest(figure)
    maker = f"; {figures.MAKER}" if figure == LAYERS else ""
    to_stderr(f"{figure} of the report {folder}{maker}")
    # If the user named no report, the newest may be a published one, which must not change.
    return figures.draw(folder, figure, out or named or paths.home() / "figures", wording.title)


def _layers(sources: list[str], out: Path | None) -> list[Path]:
    """Draw the layers of the named runs and reports in one figure; else those of the newest
    report.
    """
    from albert_lab.figures import figures
    from albert_lab.runs import run as runs

    folders = list(dict.fromkeys(runs.find(source).resolve() for source in sources))
    if not folders:
        return _of_report(LAYERS, None, out)
    if len(folders) == 1 and figures.is_report(folders[0]):
        return _of_report(LAYERS, folders[0], out)
    measured = []
    for folder in folders:
        measured += figures.layers_of(folder, to_stderr)
    return figures.compare_layers(measured, out or paths.home() / "figures")
