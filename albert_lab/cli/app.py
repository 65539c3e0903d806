"""The program: its commands, and its exit codes in words."""

import io
import sys
from typing import Annotated

import typer

from albert_lab import __version__
from albert_lab.cli import data, downstream, interop, models, paper, plot, power, studies
from albert_lab.cli import housekeeping as keeping
from albert_lab.errors import ConfigError

EXIT_CODES = (
    "Exit codes: 0 done, 1 a run failed, or all of a sweep, 2 wrong usage or configuration, or a damaged file, 3 some"
    " runs of a sweep failed, 4 data or a package is missing, 5 a claim has the verdict of --fail-on, 75 stopped"
    " (SIGTERM) and resumable, 130 stopped by Ctrl-C and resumable."
)

app = typer.Typer(
    name="albert-lab",
    help="Ablation studies of encoder pre-training: the experiments of ALBERT (arXiv 1909.11942) at any scale.",
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _part in (studies, paper, plot, power, models, downstream, data, interop, keeping):
    app.add_typer(_part.app)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"albert-lab {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the command that the words of the process name."""
    if {"-m", "--multirun"} & set(sys.argv[1:3]):
        raise ConfigError("-m is Hydra's; here a sweep is a command: albert-lab sweep embedding_size=64,128")
    for stream in (sys.stdout, sys.stderr):  # names of files need not be text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()
