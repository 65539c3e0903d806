"""Options and output that several commands share."""

from typing import Annotated, Any

import typer

# The groups of the help, in its order.
START, TABLES, STUDIES, MODELS = PANELS = (
    "Start here",
    "The paper's tables",
    "Studies and reports",
    "Models, data and tasks",
)
_ALL_KEYS = "`albert-lab config show` prints every key, `config list` the options of each group."
_OF_RUN = (
    "Settings, such as scale=smoke or sharing=not-shared; the others keep their defaults. "
    f"{_ALL_KEYS}"
)
_OF_STUDY = (
    "Settings in place of the study's own, such as scale=smoke or corpus=files "
    "corpus.path=my-texts. Several values, with commas between them, make a row each, but seeds "
    f"are averaged. {_ALL_KEYS}"
)
_MOST_JOBS = 1000  # processes: far more than are useful on any machine


def shown(panel: str, *lines: str) -> Any:
    """What a command has in the help: its group, and commands to copy at the end of its own
    page.
    """
    return {"rich_help_panel": panel, "epilog": "\n\n".join(["Examples:", *lines])}


def settings(metavar: str = "[KEY=VALUE]...", text: str = _OF_STUDY) -> Any:
    """The argument of a command that takes KEY=VALUE, with a help text for them."""
    return typer.Argument(metavar=metavar, help=text, default_factory=list, show_default=False)


def _jobs(text: str | int) -> int:
    if text in ("auto", 0):
        return 0
    if not str(text).isdecimal() or not 1 <= int(text) <= _MOST_JOBS:
        raise typer.BadParameter(
            f"{text} is neither a whole number from 1 to {_MOST_JOBS} nor auto"
        )
    return int(text)


def option(help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(help=help, metavar=metavar, show_default=False, **more)


def flag(name: str, help: str) -> Any:
    return typer.Option(name, help=help)


Overrides = Annotated[list[str], settings(text=_OF_RUN)]
Json = Annotated[bool, flag("--json", "Print the result as one JSON document.")]
_RUN = "A run by its name, that of its folder in lab/runs/, or a folder."
RunOrFolder = Annotated[str, typer.Argument(metavar="RUN", help=_RUN)]
_TASKS = (
    "Fine-tune each run on these tasks, by name or as .yaml files of your own, in place of those "
    "of the paper's table; `none` skips fine-tuning."
)
Tasks = Annotated[str | None, option(_TASKS, "NAME,...")]
_JOBS = (
    "The number of runs at a time, by default 1 (with --slurm, as many as start); `auto` trains "
    "one on each GPU."
)
Jobs = Annotated[int | None, option(_JOBS, "N|auto", parser=_jobs)]
_SLURM = (
    "Submit the runs to Slurm and return; OPTIONS are those of sbatch, as in '--gres=gpu:1'. The "
    "same command, later, submits what is missing, or writes the report."
)
Slurm = Annotated[str | None, option(_SLURM, "OPTIONS")]
_DRY_RUN = "Print the runs with the time that they need; write nothing."
DryRun = Annotated[bool, flag("--dry-run", _DRY_RUN)]


def task_names(named: str | None) -> list[str] | None:
    """The tasks that --tasks names, an empty list for `none`; None if it was not given."""
    if named is None:
        return None
    return [] if named == "none" else list(dict.fromkeys(named.split(",")))
