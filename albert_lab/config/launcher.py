"""Launchers of runs: the options in conf/launcher/, which belong to the command and not to a run's configuration."""

import re
import shutil
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from albert_lab.config.compose import content_of, parse, quoted
from albert_lab.config.section import Section
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import describe, details_of

# Options of sbatch that the launcher sets; with other values, runs would not find their jobs or parents.
_TAKEN = re.compile(r"(?:^|\s)(--(?:array|dependency|job-name|output|open-mode|parsable|wrap)|-[adJo])(?=[=\s]|$)")


def _check_options(text: str) -> str:
    if taken := _TAKEN.search(text):
        raise ValueError(f"{taken[1]} cannot be given: it is set for each script")
    if "\n" in text or (text and not text.startswith("-")):
        raise ValueError(f"{text!r}: options of sbatch on one line, such as --partition=gpu")
    return text


SbatchOptions = Annotated[str, AfterValidator(_check_options)]


class LocalLauncher(Section):
    """Runs as child processes of the command."""

    name: Literal["local"]


class ByHandLauncher(Section):
    """Command lines that the user starts."""

    name: Literal["by-hand"]


class SlurmLauncher(Section):
    """Runs as jobs of Slurm; the keys are explained in conf/launcher/slurm.yaml."""

    name: Literal["slurm"]
    sbatch: SbatchOptions
    preparation_sbatch: SbatchOptions
    at_once: int | None = Field(ge=1)


LauncherConfig = LocalLauncher | ByHandLauncher | SlurmLauncher
_LAUNCHER: TypeAdapter[LauncherConfig] = TypeAdapter(Annotated[LauncherConfig, Field(discriminator="name")])

LOCAL = LocalLauncher(name="local")


def take(overrides: Sequence[str], slurm: str | None = None) -> tuple[LauncherConfig, list[str]]:
    """The launcher of a command, and the remaining overrides for its runs.

    Args:
        slurm: options of sbatch, short for launcher=slurm; None: not given.

    Raises:
        ConfigError: an unknown option or key, or several values.
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
    return launcher, rest


def check(launcher: LauncherConfig) -> None:
    """Check that the commands of Slurm are there, if they are needed.

    Raises:
        MissingDataError: they are not.
    """
    if isinstance(launcher, SlurmLauncher) and not shutil.which("sbatch"):
        raise MissingDataError("launcher=slurm: there is no sbatch here: give the command where jobs are submitted")
