"""The options --include and --conf, which every command has: own code, and own options of the configuration."""

from pathlib import Path
from typing import Annotated, Any

import typer

from albert_lab import own_code, paths
from albert_lab.files import read_yaml

_PANEL = "Own code"


def _include(files: list[Path] | None) -> None:
    for file in files or ():
        own_code.include(paths.expanded(str(file)))


def _add_options(context: typer.Context, folders: list[Path] | None) -> None:
    added = [paths.expanded(str(folder)) for folder in folders or ()]
    context.with_resource(paths.with_conf(added))
    for file in (file for folder in added for file in sorted(folder.rglob("*.yaml"))):
        read_yaml(file)  # Hydra's own errors do not name every damaged file


_shared = typer.Typer()


@_shared.command()
def _options(
    include: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.py",
            callback=_include,
            expose_value=False,
            help="Execute this file, which adds parts of your own: measures, blocks, optimizers, ..."
            " (docs/your-own-study.md). Its digest is in the names of the runs. Repeatable.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None,
    conf: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            callback=_add_options,
            expose_value=False,
            help="Add the options in this folder to those of the configuration: FOLDER/model/mine.yaml becomes"
            " model=mine. Repeatable.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> None: ...


def add_to(command: Any) -> None:
    """Give a command, or all commands of a group, both options."""
    for one in getattr(command, "commands", {}).values():
        add_to(one)
    if not hasattr(command, "commands"):
        command.params += typer.main.get_command(_shared).params
