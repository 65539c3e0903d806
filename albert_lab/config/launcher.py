"""The launcher of runs: an option of conf/launcher/, which belongs to the command and not to a run's configuration."""

import re
import shutil
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from albert_lab.config.compose import content_of
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


class Launcher(Section):
    """How the runs of a command are started; conf/launcher/ explains the keys, which only Slurm has."""

    name: Literal["local", "by-hand", "slurm"]
    sbatch: SbatchOptions = ""
    preparation_sbatch: SbatchOptions = ""
    at_once: int | None = Field(default=None, ge=1)


LOCAL = Launcher(name="local")


def take(overrides: Sequence[str], slurm: str | None = None) -> tuple[Launcher, list[str]]:
    """The launcher of a command, and the remaining overrides for its runs.

    Args:
        slurm: options of sbatch, short for launcher=slurm; None: not given.

    Raises:
        ConfigError: an unknown option or key, or several values.
    """
    own = [text for text in overrides if re.match(r"\+*launcher[.=]", text)]
    rest = [text for text in overrides if text not in own]
    if not own and slurm is None:
        return LOCAL, rest
    if slurm is not None:
        own.append("launcher=slurm")
    content = content_of(own)["launcher"] | ({} if slurm is None else {"sbatch": slurm})
    try:
        return Launcher.model_validate(content), rest
    except ValidationError as error:
        details = [{**detail, "loc": ("launcher", *detail["loc"])} for detail in details_of(error)]
        raise ConfigError("\n".join(map(describe, details))) from error


def check(launcher: Launcher) -> None:
    """Check that the commands of Slurm are there, if they are needed.

    Raises:
        MissingDataError: they are not.
    """
    if launcher.name == "slurm" and not shutil.which("sbatch"):
        raise MissingDataError("launcher=slurm: there is no sbatch here: give the command where jobs are submitted")
