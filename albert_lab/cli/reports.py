"""Commands on existing reports: rebuild, publish, compare."""

from pathlib import Path
from typing import Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import START, STUDIES, Json, examples
from albert_lab.messages import to_stderr

app = typer.Typer()


@app.command(
    rich_help_panel=START,
    epilog=examples(
        "albert-lab report lab/reports/laptop-sotu/sop-vs-nsp",
        "albert-lab report lab/reports",
        "albert-lab report lab/reports/laptop-sotu/sop-vs-nsp --latex",
    ),
)
def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            file_okay=False,
            help="Report folders. For a folder that contains reports, their scoreboard is rebuilt.",
        ),
    ],
    latex: Annotated[
        bool, typer.Option("--latex", help="Also write the main table into report.tex, in the style of booktabs.")
    ] = False,
) -> None:
    """Rebuild reports (Markdown and HTML) and their pictures from the records."""
    from albert_lab.errors import ConfigError
    from albert_lab.report import latex as tables
    from albert_lab.report import scoreboard
    from albert_lab.report.report import PAGE, rebuild

    for folder in folders:
        if scoreboard.holds_reports(folder):
            if latex:
                raise ConfigError(f"--latex needs the folder of one report, and {folder} contains reports")
            print(scoreboard.write(folder))
        else:
            file = rebuild(folder)
            print(file, file.with_name(PAGE), sep="\n")
            if latex:
                print(tables.write(folder))


@app.command(
    rich_help_panel=STUDIES,
    epilog=examples(
        "albert-lab publish lab/reports/laptop-sotu/sop-vs-nsp",
        "albert-lab publish lab/reports/laptop-sotu/sop-vs-nsp --to ../results/reports",
    ),
)
def publish(
    folders: Annotated[list[Path], typer.Argument(file_okay=False, help="Report folders.")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", file_okay=False, help="Folder of published reports; by default reports/ in the current folder."
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Replace a published report even if it is damaged or has runs or fine-tunings that this one lacks.",
        ),
    ] = False,
) -> None:
    """Copy reports to reports/, which is kept in git, and rebuild the scoreboard there."""
    from albert_lab.report.publish import publish
    from albert_lab.storage import check_folder
    from albert_lab.studies import study

    if to:
        check_folder(to, "--to")
    for folder in folders:
        study.read(folder)  # nothing is published if one of them is no report
    for folder in folders:
        print(publish(folder, to or paths.published(), replace=replace))


@app.command(
    rich_help_panel=STUDIES,
    epilog=examples(
        "albert-lab compare reports/laptop-sotu/sop-vs-nsp lab/reports/laptop-sotu/sop-vs-nsp",
        "albert-lab compare before/sop-vs-nsp lab/reports/laptop-sotu/sop-vs-nsp --json",
    ),
)
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", file_okay=False, help="A report folder.")],
    b: Annotated[
        Path,
        typer.Argument(metavar="B", file_okay=False, help="Another one; scale, machine and version may differ."),
    ],
    as_json: Json = False,
) -> None:
    """Compare two reports side by side, with differences and intervals."""
    from albert_lab.report.compare import compare as side_by_side

    table, is_one_text = side_by_side(a, b)
    if as_json:
        print(table.reset_index().to_json(orient="records", indent=2))
    else:
        print(table.to_string(float_format="{:,.2f}".format))
    if not is_one_text:
        to_stderr("the held-out texts differ: compare directions, not values")
