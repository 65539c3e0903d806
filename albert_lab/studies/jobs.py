"""Launchers: what they are, the runs to train that they get, and those that start them here or only print them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from albert_lab import machine, signals
from albert_lab.config.compose import content_of
from albert_lab.config.section import Section
from albert_lab.errors import INTERRUPTED, STOPPED, UNWRITTEN, ConfigError, MissingDataError
from albert_lab.files import describe
from albert_lab.machine import ALLOCATOR, cores, gpus, shared_out
from albert_lab.runs import preparing
from albert_lab.runs.run import Run, is_trained

POLL_SECONDS = 0.1
# Options of sbatch that the launcher sets; with other values, runs would not find their jobs or parents.
_TAKEN = re.compile(r"(?:^|\s)(--(?:array|dependency|job-name|output|open-mode|parsable|wrap)|-[adJo])(?=[=\s]|$)")


def _check_options(text: str) -> str:
    if taken := _TAKEN.search(text):
        raise ValueError(f"{taken[1]} cannot be given: it is set for each script")
    if "\n" in text or (text and not text.startswith("-")):
        raise ValueError(f"{text!r}: options of sbatch on one line, such as --partition=gpu")
    return text


class Launcher(Section):
    """How the runs of a command are started; conf/launcher/ explains the keys, which only Slurm has."""

    name: Literal["local", "by-hand", "slurm"]
    sbatch: Annotated[str, AfterValidator(_check_options)] = ""
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
    if slurm is not None:
        own.append("launcher=slurm")
    content = content_of(own)["launcher"] | ({} if slurm is None else {"sbatch": slurm}) if own else LOCAL.model_dump()
    try:
        return Launcher.model_validate(content), rest
    except ValidationError as error:
        details = [{**detail, "loc": ("launcher", *detail["loc"])} for detail in error.errors()]
        raise ConfigError("\n".join(map(describe, details))) from error


def check(launcher: Launcher) -> None:
    """Check that the commands of Slurm are there, if they are needed.

    Raises:
        MissingDataError: they are not.
    """
    if launcher.name == "slurm" and not shutil.which("sbatch"):
        raise MissingDataError("launcher=slurm: there is no sbatch here: give the command where jobs are submitted")


@dataclass(frozen=True)
class Job:
    """A run to train.

    Attributes:
        folder: the run's folder.
        arguments: of its process: tasks to fine-tune on, seeds.
        parent: the folder of the run that it starts from, if that one is trained too.
        processes: the number of processes that train it together.
    """

    folder: Path
    arguments: Sequence[str] = ()
    parent: Path | None = None
    processes: int = 1

    @property
    def command(self) -> list[str]:
        """The command line that trains the run; torchrun starts several processes, and its exit code is 0 or 1."""
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.processes}"]
        worker = ["-m", "albert_lab.runs.worker", str(self.folder), *self.arguments]
        return [sys.executable, *(torchrun if self.processes > 1 else ()), *worker]


def generations(jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs that start from no other of them, then those that start from these, and so on."""
    by_folder = {job.folder: job for job in jobs}
    found: list[list[Job]] = []
    for job in jobs:
        depth, ancestor = 0, job
        while ancestor.parent in by_folder:
            depth, ancestor = depth + 1, by_folder[ancestor.parent]
        found += [[] for _ in range(depth + 1 - len(found))]
        found[depth].append(job)
    return found


def print_commands(jobs: Sequence[Job], unprepared: Sequence[Run]) -> None:
    """Print one line per run on stdout, after one that prepares data, if any is missing; nothing is started."""
    if unprepared:
        print("# first, and alone:")
        print(*map(shlex.join, preparing.commands(unprepared)), sep="\n")
    for generation in generations(jobs):
        for job in generation:
            if job.parent:
                print(f"# after the line of {job.parent.name}:")
            print(shlex.join(job.command), flush=True)


def launch(jobs: Sequence[Job], at_once: int, on_end: Callable[[Job, int], bool]) -> int:
    """Train runs in child processes, at most `at_once` at a time, which divide cores and GPUs among them.

    After SIGINT or SIGTERM the children get SIGTERM, so that they save a checkpoint and end.
    What they print goes to this process's stderr, which may be a file.

    Args:
        jobs: the runs; one that starts from another of them waits for it.
        at_once: the number of runs at a time.
        on_end: called with a run and the exit code of its process, or minus the number of the signal that killed it. If
            it returns False, no further run is started.

    Returns:
        0, or the code of an incomplete study: 130 after Ctrl-C, 75 after SIGTERM, sent to this process or to a run's,
        74 if a run could not write.
    """
    waiting, code_of_study, is_told = list(jobs), 0, False
    running: dict[Job, tuple[subprocess.Popen[bytes], int]] = {}
    visible = shared_out(gpus(), at_once) if at_once > 1 else [[]]
    environment = {key: value for key, value in os.environ.items() if key not in machine.RANK}  # of another program
    environment = ALLOCATOR | environment  # the user's settings win
    environment |= {"ALBERT_LAB_THREADS": str(max(1, cores() // at_once)), "ALBERT_LAB_JOBS": str(at_once)}
    with signals.deferred() as received:
        while running or (waiting and not received):
            awaited = {job.folder for job in (*waiting, *running)}
            for job in [job for job in waiting if job.parent not in awaited]:
                if received or len(running) == at_once:
                    break
                waiting.remove(job)
                if job.parent and not is_trained(job.parent):
                    continue  # its parent did not finish
                slot = min(set(range(at_once)) - {slot for _, slot in running.values()})
                own = {"CUDA_VISIBLE_DEVICES": ",".join(visible[slot])} if visible[slot] else {}
                # A group of its own: Ctrl-C in the terminal reaches this process alone.
                child = subprocess.Popen(
                    job.command,
                    env=environment | own,
                    stdin=subprocess.DEVNULL,
                    stdout=sys.stderr,
                    stderr=sys.stderr,
                    process_group=0,
                )
                running[job] = child, slot
            if received and not is_told:
                is_told = True
                for child, _ in running.values():
                    child.terminate()
            for job, (child, _) in list(running.items()):
                if (code := child.poll()) is not None:
                    del running[job]
                    if -code in signals.NUMBERS or (code and received):
                        code = STOPPED
                    if code in (STOPPED, INTERRUPTED, UNWRITTEN):
                        code_of_study = code
                    if not on_end(job, code):
                        waiting.clear()
            time.sleep(POLL_SECONDS)
    return signals.exit_code() or code_of_study
