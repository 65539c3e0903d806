"""The options --include and --conf, which every command has: own code, and own options of the configuration."""

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from albert_lab import paths, registry
from albert_lab.errors import ConfigError
from albert_lab.files import read_yaml

_PANEL = "Own code"
_Include = Annotated[
    list[Path] | None,
    typer.Option(
        "--include",
        metavar="FILE.py",
        help="Execute this file, which registers parts of your own: blocks, optimizers, measures, ..."
        " (docs/own-code.md). Its text is recorded in the runs that use it. Repeatable.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
_Conf = Annotated[
    list[Path] | None,
    typer.Option(
        "--conf",
        metavar="FOLDER",
        help="Add the options in this folder to those of the configuration: FOLDER/model/mine.yaml becomes model=mine."
        " Repeatable.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Give every command of a program both options."""
    for info in app.registered_commands:
        assert info.callback
        info.callback = _with_own_code(info.callback)
    for group in app.registered_groups:
        assert group.typer_instance
        add_to(group.typer_instance)


def _with_own_code(command: Callable[..., None]) -> Callable[..., None]:
    def run(include: list[Path] | None = None, conf: list[Path] | None = None, **options: Any) -> None:
        folders = [_path(folder) for folder in conf or []]
        with registry.separate(), paths.with_conf(folders):
            for option in (file for folder in folders for file in sorted(folder.rglob("*.yaml"))):
                read_yaml(option)  # Hydra's own errors do not name every damaged file
            for file in include or []:
                registry.include(_path(file))
            try:
                command(**options)
            except Exception as error:
                if text := registry.error_of_own_code(error):
                    raise ConfigError(text) from error
                raise

    hints = get_type_hints(command, include_extras=True)
    own = [item.replace(annotation=hints[item.name]) for item in signature(command).parameters.values()]
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in (("include", _Include), ("conf", _Conf))
    ]
    run.__signature__ = Signature([*(item.replace(kind=Parameter.KEYWORD_ONLY) for item in own), *shared])  # pyright: ignore
    run.__annotations__ = {item.name: item.annotation for item in (*own, *shared)}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _path(file: Path) -> Path:
    return paths.expanded(str(file))
