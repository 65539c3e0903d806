"""The command that simulates the tests of claims."""

from typing import Annotated

import typer

from albert_lab.cli.options import STUDIES, examples

app = typer.Typer()


@app.command(rich_help_panel=STUDIES, epilog=examples("albert-lab power", "albert-lab power --tables 5000"))
def power(
    tables: Annotated[int, typer.Option(min=20, help="Drawn tables for each number.")] = 1_000,
) -> None:
    """Simulate the tests of claims: how often they are wrong, and how often they find a real effect."""
    from albert_lab.report.simulation import as_markdown

    print(as_markdown(tables))
