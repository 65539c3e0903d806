"""The program: its commands, and its exit codes in words."""

import argparse
import io
import os
import re
import shutil
import sys
import textwrap
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from albert_lab import __version__, own_code, paths
from albert_lab.cli import housekeeping, models, results, studies, tasks
from albert_lab.cli.options import PANELS, flag
from albert_lab.errors import ConfigError
from albert_lab.messages import visible

EXIT_CODES = (
    "Exit codes: 0 done; 1 the run failed, all runs of a study failed, or the disk is full; 2 "
    "wrong usage or configuration, or a damaged file; 3 some runs of a study failed; 4 data or a "
    "package is missing; 75 stopped by SIGTERM; 130 stopped by Ctrl-C. A stopped command resumes "
    "when you run it again."
)
# lines of options, and file names that are no valid text
_ALLOWED_UNSEEN = re.compile("[\n\t\ud800-\udfff]")
_MOST_DIGITS = 4  # of the columns and lines of a terminal
OPTIONS = "--include FILE.py, --conf FOLDER, --version, -h"


class _Grouped(TyperGroup):
    """Lists commands by group, and within a group in the order in which they were added; the help
    fits 40 rows.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        width = shutil.get_terminal_size().columns - 1
        lines = [
            f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGS]...   ({OPTIONS})",
            str(self.help),
        ]
        for panel in PANELS:
            lines.append(f"{panel}:")
            for name, command in self.commands.items():
                if getattr(command, "rich_help_panel", None) == panel:
                    text = textwrap.shorten(
                        command.get_short_help_str(limit=999),
                        max(40, width - 20),
                        placeholder="...",
                    )
                    lines.append(f"  {name:<18}{text}")
        formatter.write("\n".join([*lines, *textwrap.wrap(EXIT_CODES, max(40, width))]) + "\n")


app = typer.Typer(
    name="albert-lab",
    cls=_Grouped,
    help="Ablation studies of encoder pre-training: the experiments of ALBERT (arXiv 1909.11942) "
    "at any scale.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _part in (studies, results, models, tasks, housekeeping):
    app.add_typer(_part.app)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, flag("--version", "Print the version.")] = False) -> None:
    if version:
        print(f"albert-lab {__version__}")
        raise typer.Exit


def _take_own_options(words: list[str]) -> list[str]:
    """The words of a command without --include FILE.py and --conf FOLDER, which stand anywhere in
    it, after these files are executed and these folders have joined those of options.
    """
    parser = argparse.ArgumentParser(prog="albert-lab", add_help=False, allow_abbrev=False)
    parser.add_argument("--include", metavar="FILE.py", action="append", default=[])
    parser.add_argument("--conf", metavar="FOLDER", action="append", default=[])
    own, others = parser.parse_known_args(words)
    for file in own.include:
        own_code.include(paths.expanded(file))
    paths.use_conf(map(paths.expanded, own.conf))
    return others


def run() -> None:
    """Run the command in sys.argv: --include and --conf take effect here, Typer has the other
    words.

    Raises:
        ConfigError: an argument has characters that cannot be seen.
    """
    _settle_streams()
    words = sys.argv[1:]
    for word in words:
        text = _ALLOWED_UNSEEN.sub(" ", word)
        if visible(text) != text:
            raise ConfigError(
                f"{word}: an argument has characters that cannot be seen; rename what it names"
            )
    app(_take_own_options(words) or ["--help"])


def _settle_streams() -> None:
    """Make the standard streams and the width of lines what every library takes."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            # It was closed: a file that is opened later must not get its number.
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # file names need not be valid text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for variable in ("COLUMNS", "LINES"):  # lines are filled up to them
        if len(os.environ.get(variable, "")) > _MOST_DIGITS:
            del os.environ[variable]
