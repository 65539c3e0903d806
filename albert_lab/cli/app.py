"""The program: its commands, its signals and its exit codes."""

import os
import signal
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from albert_lab import __version__
from albert_lab.cli import data, downstream, housekeeping, interop, models, paper, plot, reports, studies
from albert_lab.cli.options import PANELS, note

EXIT_CODES = (
    "Exit codes: 0 done, 1 a run failed, 2 wrong usage or configuration, 3 some runs of a study failed, 4 data or a"
    " package is missing, 5 a claim has the verdict of --fail-on, 75 stopped by SIGTERM, 130 stopped by Ctrl-C. A"
    " stopped command resumes when it is given again."
)


# The first commands of the help: what a newcomer needs.
FIRST = ("pretrain", "sop-vs-nsp", "sweep", "report")


class _Grouped(TyperGroup):
    """Commands in the order of the help's groups, in each as they were added."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = [name for name in self.commands if name not in FIRST]
        panel = {name: getattr(self.commands[name], "rich_help_panel", None) for name in names}
        return [*FIRST, *sorted(names, key=lambda name: PANELS.index(panel[name]))]


app = typer.Typer(
    name="albert-lab",
    cls=_Grouped,
    help="Ablation studies of encoder pre-training: the experiments of ALBERT (arXiv 1909.11942) at any scale.",
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _part in (studies, paper, reports, plot, models, downstream, data, interop, housekeeping):
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


class _SignalledError(BaseException):
    """A signal arrived while this process itself was at work."""


def _raise_signalled(number: int, _frame: Any) -> NoReturn:
    raise _SignalledError(number)


def main() -> None:
    """Run the command line; every error that a user can cause ends in one line on stderr and its exit code."""
    if {"-m", "--multirun"} & set(sys.argv[1:3]):
        _fail("-m is Hydra's; here a sweep is a command: albert-lab sweep embedding_size=64,128", 2)
    signal.signal(signal.SIGINT, _raise_signalled)
    signal.signal(signal.SIGTERM, _raise_signalled)
    from albert_lab.errors import ConfigError, MissingDataError

    try:
        app()
    except ConfigError as error:
        _fail(error, 2)
    except MissingDataError as error:
        _fail(error, 4)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (RuntimeError, OSError) as error:
        _fail(error, 1)
    except _SignalledError as signalled:
        interrupted = signalled.args[0] == signal.SIGINT
        _fail("stopped; the same command resumes", 130 if interrupted else 75)


def _fail(error: object, code: int) -> NoReturn:
    if os.environ.get("ALBERT_LAB_TRACEBACK") and isinstance(error, BaseException):
        raise error
    note(f"albert-lab: {error}")
    sys.exit(code)
