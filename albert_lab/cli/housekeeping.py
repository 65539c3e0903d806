"""Housekeeping commands: the state of runs, and disk space that can be freed."""

import json
import sys
from typing import Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import HOUSEKEEPING, Json, examples, note

app = typer.Typer()


@app.command(rich_help_panel=HOUSEKEEPING, epilog=examples("albert-lab status", "albert-lab status --json"))
def status(as_json: Json = False) -> None:
    """List all runs with their progress."""
    from albert_lab.runs.status import rows, text

    found = rows(paths.runs())
    print(json.dumps(found, indent=2) if as_json else text(found))


@app.command(rich_help_panel=HOUSEKEEPING, epilog=examples("albert-lab clean", "albert-lab clean --cache --yes"))
def clean(
    cache: Annotated[
        bool, typer.Option("--cache", help="Also prepared text and tokenizers (remade when needed).")
    ] = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Also the weights of finished runs (scores and curves stay).")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """List what can be deleted to free disk space, ask, then delete it."""
    from albert_lab.errors import ConfigError
    from albert_lab.runs import cleaning

    found = cleaning.garbage(cache=cache, checkpoints=checkpoints)
    if as_json:
        print(json.dumps({str(path): size for path, size in found.items()}, indent=2))
    else:
        for path, size in found.items():
            print(f"{size / 2**20:>10.1f} MiB  {path}")
    for path in cleaning.kept(cache=cache, checkpoints=checkpoints):
        note(f"kept, since a process uses it: {path}")
    total = sum(found.values()) / 2**20
    if not found:
        note("nothing to free")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"{total:.1f} MiB could be freed: without a terminal, confirm with --yes")
        typer.confirm(f"Free {total:.1f} MiB?", abort=True, err=True)
    cleaning.free(found)
    note(f"freed {total:.1f} MiB")
