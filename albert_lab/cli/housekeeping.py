"""Housekeeping commands: the state of runs, and disk space that can be freed."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from albert_lab import paths
from albert_lab.cli.options import HOUSEKEEPING, Json, flag, shown
from albert_lab.messages import to_stderr

app = typer.Typer()
_REPORT = "Only the runs of this study, by the folder of its report, which exists before its first run."


@app.command(**shown(HOUSEKEEPING, "albert-lab status", "albert-lab status lab/reports/laptop-sotu/sop-vs-nsp"))
def status(
    report: Annotated[Path | None, typer.Argument(metavar="[REPORT]", file_okay=False, help=_REPORT)] = None,
    as_json: Json = False,
) -> None:
    """List all runs, or those of a study, with their progress: rate, losses and time left."""
    from albert_lab.runs import states
    from albert_lab.studies.study import read_points

    names = None if report is None else {point.run for point in read_points(report).points}
    listed = states.rows(paths.runs(), names)
    print(json.dumps(listed, indent=2) if as_json else states.as_text(listed))


@app.command(**shown(HOUSEKEEPING, "albert-lab clean", "albert-lab clean --cache --yes"))
def clean(
    cache: Annotated[bool, flag("--cache", "Also prepared text and tokenizers (remade when needed).")] = False,
    checkpoints: Annotated[
        bool, flag("--checkpoints", "Also the weights of finished runs (scores and curves stay).")
    ] = False,
    yes: Annotated[bool, flag("--yes", "Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """List what can be deleted to free disk space, ask, then delete it."""
    from albert_lab.errors import ConfigError
    from albert_lab.messages import size
    from albert_lab.runs import states

    garbage = states.find_garbage(cache=cache, checkpoints=checkpoints)
    if as_json:
        print(json.dumps({str(path): num_bytes for path, num_bytes in garbage.items()}, indent=2))
    else:
        print(*(f"{size(num_bytes):>12}  {path}\n" for path, num_bytes in garbage.items()), sep="", end="")
    total = size(sum(garbage.values()))
    if not garbage:
        to_stderr("nothing to free")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"{total} could be freed: without a terminal, confirm with --yes")
        typer.confirm(f"Free {total}?", abort=True, err=True)
    states.free(garbage)
    to_stderr(f"freed {total}")
