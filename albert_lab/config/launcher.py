"""Launchers of runs: the options in conf/launcher/, which belong to the command and not to a run's configuration."""

import re
import shlex
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from albert_lab.config.compose import content_of, parse, quoted
from albert_lab.config.section import Section
from albert_lab.errors import ConfigError
from albert_lab.files import describe, details_of

Preparation = Literal["here", "job"]
# Options of sbatch that the launcher sets; with other values, runs would not find their jobs or parents.
_TAKEN = {
    "array": "a",
    "dependency": "d",
    "error": "e",
    "input": "i",
    "job-name": "J",
    "open-mode": "",
    "output": "o",
    "parsable": "",
    "wait": "W",
    "wrap": "",
}


def _check_options(text: str) -> str:
    try:
        options = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r} cannot be split as a shell does: {error}") from error
    if options and not options[0].startswith("-"):
        raise ValueError(f"{text!r}: options of sbatch begin with a dash, such as --partition=gpu")
    for option in options:
        for name, letter in _TAKEN.items():
            if re.match(rf"--{name}(=|$)", option) or (letter and re.match(rf"-{letter}", option)):
                raise ValueError(f"{option} cannot be given: --{name} of sbatch is set for each run")
    return text


SbatchOptions = Annotated[str, AfterValidator(_check_options)]


class LocalLauncher(Section):
    """Runs as child processes of the command."""

    name: Literal["local"]


class ByHandLauncher(Section):
    """Command lines that the user starts."""

    name: Literal["by-hand"]
    preparation: Preparation


class SlurmLauncher(Section):
    """Runs as jobs of Slurm; the keys are explained in conf/launcher/slurm.yaml."""

    name: Literal["slurm"]
    sbatch: SbatchOptions
    preparation: Preparation
    preparation_sbatch: SbatchOptions
    at_once: int | None = Field(ge=1)
    poll_seconds: float = Field(gt=0)


LauncherConfig = LocalLauncher | ByHandLauncher | SlurmLauncher
_LAUNCHER: TypeAdapter[LauncherConfig] = TypeAdapter(Annotated[LauncherConfig, Field(discriminator="name")])

LOCAL = LocalLauncher(name="local")


def take(
    overrides: Sequence[str], slurm: str | None = None, *, detach: bool = False
) -> tuple[LauncherConfig, list[str]]:
    """The launcher of a command, and the remaining overrides for its runs.

    Args:
        slurm: options of sbatch, short for launcher=slurm; None: not given.
        detach: whether the command ends without waiting for the runs.

    Raises:
        ConfigError: an unknown option or key, several values, or --detach with runs that end with the command.
    """
    own, rest = [], []
    for text in overrides:
        key = text.split("=")[0].lstrip("+")
        (own if key == "launcher" or key.startswith("launcher.") else rest).append(text)
    if slurm is not None:
        named = [text for text in own if text.split("=")[0] in ("launcher", "launcher.sbatch")]
        if named and named != ["launcher=slurm"]:
            raise ConfigError(
                f"--slurm is short for launcher=slurm launcher.sbatch=...; {' '.join(named)} was given too"
            )
        own = [text for text in own if text not in named]
        own += ["launcher=slurm", f"launcher.sbatch={quoted(slurm)}"]
    for override in parse(own):
        if override.is_sweep_override():
            raise ConfigError(f"{override.input_line}: one command has one launcher")
    try:
        launcher = _LAUNCHER.validate_python(content_of(tuple(own))["launcher"])
    except ValidationError as error:
        # The first part of a location is the option, which selects the model.
        details = [{**detail, "loc": ("launcher", *detail["loc"][1:])} for detail in details_of(error)]
        raise ConfigError("\n".join(map(describe, details))) from error
    if detach and isinstance(launcher, LocalLauncher):
        raise ConfigError("--detach: runs on this machine end with the command; give --slurm OPTIONS as well")
    return launcher, rest
