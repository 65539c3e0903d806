"""Options and output that several commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from albert_lab.errors import ConfigError
from albert_lab.machine import AUTO_JOBS

if TYPE_CHECKING:  # they load Hydra, which the help does not need
    from albert_lab.studies.execute import Options
    from albert_lab.studies.plan import Plan

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


# The groups of the options of a study.
_WHERE, _AGAIN, _BEFORE = "How runs are trained", "Runs that were trained before", "To look before anything is trained"
_ALL_KEYS = "`albert-lab config show` prints every key, `albert-lab config list` the options of each group."


_OF_RUN = f"Settings, such as scale=smoke or sharing=not-shared; the others keep their defaults. {_ALL_KEYS}"
_OF_STUDY = (
    "Settings in place of the study's own, such as scale=smoke or corpus=files corpus.path=my-texts. Several values"
    f" of one, with commas between them, make a row each; several seeds are averaged in a row. {_ALL_KEYS}"
)


def settings(metavar: str = "[KEY=VALUE]...", text: str = _OF_STUDY) -> Any:
    """The argument of a command that takes KEY=VALUE, with a help text for them."""
    return typer.Argument(metavar=metavar, help=text, autocompletion=_complete_override)


def figure_folder(text: str) -> Any:
    """The option --out of a command that draws; a folder that cannot be written is refused before anything is done."""

    def check(out: Path | None) -> Path | None:
        from albert_lab.storage import check_folder

        if out is not None:
            check_folder(out, "--out")
        return out

    return typer.Option("--out", help=text, show_default=False, callback=check)


Overrides = Annotated[list[str] | None, settings(text=_OF_RUN)]
TaskOverrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...", help="Settings of the task's file, conf/task/TASK.yaml, as settings.laptop.steps=400."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Tasks = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Fine-tune each run on these tasks, by name or as .yaml files of your own. By default, a study of the"
        " paper has those of its table; `none` skips fine-tuning.",
        show_default=False,
    ),
]


_MOST_JOBS = 1000  # processes: far more than are useful on any machine


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
        help="The number of runs at a time; `auto` trains one on each GPU.",
        rich_help_panel=_WHERE,
    ),
]
Slurm = Annotated[
    str | None,
    typer.Option(
        "--slurm",
        metavar="OPTIONS",
        help="Submit the runs to Slurm and return; OPTIONS are those of sbatch, as in '--partition=gpu --gres=gpu:1'."
        " The same command, later, submits what is missing, or writes the report.",
        show_default=False,
        rich_help_panel=_WHERE,
    ),
]
FailFast = Annotated[
    bool,
    typer.Option("--fail-fast/--keep-going", help="Start no more runs after one has failed.", rich_help_panel=_WHERE),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh",
        help="Delete the runs of this command, finished ones too, and train them again from scratch.",
        rich_help_panel=_AGAIN,
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="Resume failed runs from their last checkpoint instead of skipping them.",
        rich_help_panel=_AGAIN,
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="DEVICE",
        help="With --dry-run: the time on a device with this in its name, on which a run was trained, as h100.",
        show_default=False,
        rich_help_panel=_BEFORE,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print the runs with the time and memory they need; write nothing.", rich_help_panel=_BEFORE
    ),
]
ListFolders = Annotated[
    bool,
    typer.Option("--list", help="Print the folder and the state of each run; write nothing.", rich_help_panel=_BEFORE),
]
FailOn = Annotated[
    Literal["not-supported"] | None,
    typer.Option(
        "--fail-on", metavar="not-supported", help="Exit with code 5 if a claim of the study is not supported."
    ),
]


def task_names(named: str | None) -> list[str] | None:
    """The tasks that --tasks names, an empty list for `none`; None if it was not given.

    Raises:
        ConfigError: a task that is named twice, or `none` together with others.
    """
    if named is None or named == "none":
        return None if named is None else []
    names = named.split(",")
    if "none" in names or len(set(names)) < len(names):
        raise ConfigError(f"--tasks {named}: different tasks with commas between them, or `none` by itself")
    return names


@dataclass(frozen=True)
class StudyOptions:
    """How the runs of a study are trained, and what is printed of them."""

    tasks: str | None
    jobs: int
    slurm: str | None
    fail_fast: bool
    fresh: bool
    retry_failed: bool
    dry_run: bool
    list_folders: bool
    on: str | None
    fail_on: str | None
    as_json: bool

    def __post_init__(self) -> None:
        if self.on is not None and not self.dry_run:
            raise ConfigError(f"--on {self.on}: give it with --dry-run; machine.device sets where runs are trained")
        if self.dry_run and self.list_folders:
            raise ConfigError("--dry-run and --list: give one of them")

    def take_launcher(self, overrides: list[str] | None) -> "tuple[Options, list[str]]":
        """How runs are trained, and the overrides without those of the launcher."""
        from albert_lab.config.launcher import check, take
        from albert_lab.studies.execute import Options

        launcher, rest = take(overrides or [], self.slurm)
        if not self.dry_run:
            check(launcher)
        return Options(self.jobs, self.fail_fast, launcher), rest

    def reset(self, plan: "Plan") -> "Plan":
        """The plan after the runs that are to be trained again were reset."""
        from albert_lab.studies.execute import reset

        return reset(plan, fresh=self.fresh, retry_failed=self.retry_failed)


def examples(*lines: str) -> str:
    """The end of a command's help: commands to copy."""
    return "Examples:\n\n" + "\n\n".join(f"[cyan]{line.replace('[', chr(92) + '[')}[/cyan]" for line in lines)
