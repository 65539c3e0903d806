"""The process that trains one run: `python -m albert_lab.runs.worker FOLDER [ARGUMENTS]`."""

import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from albert_lab import own_code, paths, signals
from albert_lab.errors import (
    FIXABLE,
    REFUSED,
    STOPPED,
    UNWRITTEN,
    LostProcessError,
    MissingDataError,
    is_full,
)
from albert_lab.machine import Rank, read_rank
from albert_lab.messages import Say, to_stderr, to_stdout
from albert_lab.runs import preparing, results
from albert_lab.runs.finetunings import Seeds, missing, train, wanted
from albert_lab.runs.from_weights import score_again
from albert_lab.runs.run import (
    FAILURE,
    TRACEBACK,
    Run,
    check_text,
    held,
    is_trained,
    read,
    share_of_threads,
    use_threads,
)
from albert_lab.storage import write_atomically

if TYPE_CHECKING:  # it loads torch, and the thread count must be set before that
    from albert_lab.training.pretrain import Inherited


def main(
    folder: Path,
    tasks: Sequence[str] = (),
    seeds: Seeds = None,
    include: Sequence[str] = (),
    *,
    with_random: bool = False,
    only_time: bool = False,
) -> int:
    """Train or resume one run and its fine-tunings on tasks, and return the exit code.

    Of several processes that torchrun started, all but the first only help to pre-train.

    Args:
        tasks: by name or file.
        seeds: of the fine-tunings; None: those of each task.
        include: files of own code, of run and tasks.
        with_random: also fine-tune random weights of its shape.
        only_time: train nothing, and print the seconds of its training on a token.

    Returns:
        0 done (reasons of failed fine-tunings are recorded); 1 failed; 2 invalid configuration; 4
        missing data; 75 stopped by SIGTERM, or another process of the run was lost, resumable; 130
        stopped by Ctrl-C, resumable; 74 the disk is full, resumable.
    """
    rank = read_rank()
    name = folder.name.rpartition("_")[0] or folder.name

    def say_any(text: str) -> None:
        to_stderr(f"{name}: {text}")

    say = say_any if rank.leads else lambda _line: None
    if only_time:
        return _time(folder, include)
    with signals.deferred(ends_at_second=True) as stopped_by:
        signals.end_with_parent()
        is_stopped = partial(bool, stopped_by)
        try:
            with held(folder, say, is_stopped) if rank.leads else nullcontext():
                if rank.leads:
                    (folder / FAILURE).unlink(missing_ok=True)  # of an earlier try
                run = read(folder)
                use_threads(folder, run.config, rank)
                _include(include, run)  # now: it may load torch
                if not is_trained(folder):
                    check_text(run)
                is_stopped_here = rank.leads and not score_again(run, folder, say, is_stopped)
                if not is_stopped_here and _pretrain(run, folder, say, is_stopped, rank):
                    tuned = wanted(run, tasks, seeds, with_random=with_random) if rank.leads else []
                    if train(missing(tuned), say, is_stopped):
                        return 0
                say("stopped; its state is saved, and the same command resumes from there")
        except Exception as error:
            # The signal may have ended other processes and caused this error; any other error will
            # occur again, and a stop cannot fill a disk.
            is_of_stop = stopped_by or isinstance(error, LostProcessError)
            if is_full(error) or not is_of_stop:
                return _fail(folder, say_any, error)
            say(f"stopped; the same command resumes from the last checkpoint ({error!r})")
        # Without a signal here, another process of the run received one.
        return signals.exit_code() or STOPPED


def _time(folder: Path, include: Sequence[str]) -> int:
    """Print the seconds of training on a token of a run, of which nothing is made here."""
    signals.end_with_parent()
    run = read(folder)
    _include(include, run)
    import torch

    from albert_lab.training.device import choose_device
    from albert_lab.training.step import time_token

    settings = run.config.machine
    torch.set_num_threads(share_of_threads(run.config, settings.processes))
    to_stdout(str(time_token(run.config, choose_device(settings.device))))
    return 0


def _include(files: Sequence[str], run: Run) -> None:
    """Execute files of own code; ConfigError unless those of the run are among them."""
    for file in files:
        own_code.include(Path(file))
    own_code.check(run.own_code, run.name)


def _fail(folder: Path, say: Say, error: Exception) -> int:
    """Leave the reason of a failure in the folder of the run, and return the exit code."""
    from_own_code = own_code.suspected(error)
    text = from_own_code or str(error) or type(error).__name__
    say(f"failed: {text}")
    is_refused = getattr(error, "errno", None) in REFUSED
    is_fixable = is_refused or isinstance(error, FIXABLE)
    if not is_full(error):
        try:
            write_atomically(folder / FAILURE, text + "\n")
            if not is_fixable:
                write_atomically(folder / TRACEBACK, "".join(traceback.format_exception(error)))
        except OSError as unwritten:
            error = unwritten
    if is_full(error):
        return UNWRITTEN
    if isinstance(error, MissingDataError):
        return 4
    return 2 if from_own_code or is_fixable else 1


def _pretrain(run: Run, folder: Path, say: Say, is_stopped: Callable[[], bool], rank: Rank) -> bool:
    """Prepare the data, train, evaluate; the leading process writes the record. False if stopped
    before the end.

    Raises:
        LostProcessError: another process of the run was lost.
    """
    if rank.total == 1 and is_trained(folder):  # several processes tell each other
        return True
    import torch

    from albert_lab.data.batches import StagedBatches
    from albert_lab.training.device import check_memory, choose_device, choose_precision
    from albert_lab.training.evaluate import Evaluator
    from albert_lab.training.log import MetricsLog
    from albert_lab.training.pretrain import Pretrainer
    from albert_lab.training.processes import joined

    config = run.config
    commit = None
    if rank.leads:  # in a job, only this process knows its machine
        # now: the files may change while the run trains
        commit = commit_of(paths.PACKAGE.parent)
        check_memory(config)
    threads = use_threads(folder, config, rank)
    torch.set_num_threads(threads)
    device = choose_device(config.machine.device, rank)
    with joined(device, rank) as processes:
        if processes.any(rank.leads and is_trained(folder)):
            return True
        with processes.leader_first():
            data = preparing.load(config, say)
        evaluator = Evaluator(
            config,
            data.fitted_on,
            data.dev,
            data.tokenizer,
            data.floors,
            device,
            lambda: processes.any(is_stopped()),
        )
        trained = Pretrainer(
            config,
            run_name=run.name,
            folder=folder,
            batches=StagedBatches(data.train, data.tokenizer, config),
            evaluator=evaluator,
            log=MetricsLog(folder) if processes.leads else None,
            is_stopped=is_stopped,
            say=say,
            start=_start(run),
            processes=processes,
        ).run()
        if trained is None:
            return False
        devices = processes.devices(device)
        if processes.leads:
            record = results.make_record(
                run,
                trained,
                data.train,
                data.dev,
                devices,
                device=device.type,
                precision=choose_precision(config.machine.precision, device),
                threads=threads,
                commit=commit,
            )
            results.write(folder, record)
    return True


def _start(run: Run) -> "Inherited | None":
    """What a run starts from; None if from random weights, MissingDataError if that is not
    finished.
    """
    from albert_lab.model.shape import EncoderShape
    from albert_lab.training.pretrain import Inherited

    if run.start_from is None:
        return None
    folder = paths.runs() / run.start_from.run
    if not is_trained(folder):
        raise MissingDataError(
            f"{run.name} starts from {run.start_from.run}, which is not finished"
        )
    parent = read(folder).config
    untrained = results.untrained_parts(folder)
    if run.config.inter_sentence.labels and not parent.inter_sentence.labels:
        untrained = (*untrained, "pair_head")
    shape = EncoderShape.from_config(parent)
    return Inherited(
        run.start_from.run, folder, shape, run.start_from.keep, tuple(sorted({*untrained}))
    )


def command(folder: str, arguments: str = "{}") -> int:
    """The exit code of main() with its other arguments as JSON, in which conf has the folders of
    own options, such as tasks.
    """
    others = json.loads(arguments)
    paths.use_conf(map(Path, others.pop("conf", ())))
    return main(Path(folder), **others)


def commit_of(checkout: Path) -> str | None:
    """The commit of a checkout, 40 hex digits, with -dirty if tracked files have changed; elsewhere
    that of which the installed package was built, or None.
    """
    if not (checkout / ".git").exists():
        built_of = paths.PACKAGE / "COMMIT"  # hatch_build.py
        return built_of.read_text().strip() or None if built_of.exists() else None
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty"]
    try:
        return subprocess.check_output(
            command, cwd=checkout, stderr=subprocess.DEVNULL, text=True
        ).strip()
    except (OSError, subprocess.CalledProcessError):  # git is not installed, or refuses
        return None


if __name__ == "__main__":
    sys.exit(command(*sys.argv[1:]))
