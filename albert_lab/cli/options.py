"""Options and output that several commands share."""

import sys
from typing import Annotated, Literal

import typer

from albert_lab.errors import ConfigError
from albert_lab.machine import AUTO_JOBS

# The groups of the help, in its order.
START, TABLES, STUDIES, MODELS, DOWNSTREAM, HOUSEKEEPING = PANELS = (
    "Start here",
    "The paper's tables",
    "Studies and reports",
    "Models and data",
    "Downstream tasks",
    "Housekeeping",
)


def _complete_override(incomplete: str) -> list[str]:
    from albert_lab.config.compose import complete

    return complete(incomplete)


Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings in Hydra's grammar: scale=smoke, seed=0,1,2, optimizer.learning_rate=0.01. Values are taken"
        " literally (embedding_size=64 is 64 at every scale), except names of rows that set several keys"
        " (model=BERT-large).",
        autocompletion=_complete_override,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Tasks = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Fine-tune on these tasks (names, or .yaml files of your own) instead of the default ones; `none` skips"
        " fine-tuning.",
        show_default=False,
    ),
]


_MOST_JOBS = 1000  # processes: far more than any machine makes faster


def _jobs(text: str | int) -> int:
    if text in ("auto", AUTO_JOBS):
        return AUTO_JOBS
    try:
        jobs = int(text)
    except ValueError:
        jobs = -1
    if not 1 <= jobs <= _MOST_JOBS:
        raise typer.BadParameter(f"{text} is neither a whole number from 1 to {_MOST_JOBS} nor auto")
    return jobs


Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        parser=_jobs,
        metavar="N|auto",
        help="Number of runs in parallel, which share cores and GPUs; auto: one on each GPU.",
    ),
]
Slurm = Annotated[
    str | None,
    typer.Option(
        "--slurm",
        metavar="WORDS",
        help="Submit each run as a Slurm job; WORDS are options of sbatch, as in '--partition=gpu --gres=gpu:1'.",
        show_default=False,
    ),
]
Detach = Annotated[
    bool,
    typer.Option(
        "--detach", help="With --slurm: submit the jobs and return; the same command, later, writes the report."
    ),
]
FailFast = Annotated[bool, typer.Option("--fail-fast/--keep-going", help="Start no more runs after one has failed.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start all runs again from scratch, finished ones too.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Resume failed runs from their last checkpoint.")]
RemakeRecorded = Annotated[
    bool,
    typer.Option(
        "--remake-recorded",
        help="Train again runs whose scores are in a report but whose folders are not on this machine.",
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="DEVICE",
        help="With --dry-run: the time it takes on this device (h100, a100, rtx4090, cpu, ...), by runs that were made"
        " on one or else by its peak.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the runs and their cost; write nothing.")]
ListFolders = Annotated[bool, typer.Option("--list", help="Print run folders and their states; write nothing.")]
FailOn = Annotated[
    Literal["not-supported"] | None,
    typer.Option(
        "--fail-on", metavar="not-supported", help="Exit with code 5 if a claim of the study gets this verdict."
    ),
]


def task_names(given: str | None) -> list[str] | None:
    """The tasks that --tasks names, none of them for `none`; None where it was not given.

    Raises:
        ConfigError: a task that is named twice, or `none` together with others.
    """
    if given is None or given == "none":
        return None if given is None else []
    names = given.split(",")
    if "none" in names or len(set(names)) < len(names):
        raise ConfigError(f"--tasks {given}: different tasks with commas between them, or `none` by itself")
    return names


def check_views(*, dry_run: bool, list_folders: bool, on: str | None = None) -> None:
    """Raise ConfigError if --dry-run and --list are both given, or --on without a price to be told."""
    if on is not None and not dry_run:
        raise ConfigError(f"--on {on}: it belongs to --dry-run; machine.device says where runs are made")
    if dry_run and list_folders:
        raise ConfigError("--dry-run and --list: give one of them")


def note(line: str) -> None:
    """Print a line to stderr; stdout is for data."""
    print(line, file=sys.stderr, flush=True)


def examples(*lines: str) -> str:
    """The end of a command's help: commands to copy."""
    return "Examples:\n\n" + "\n\n".join(f"[cyan]{line.replace('[', chr(92) + '[')}[/cyan]" for line in lines)
