"""The process that trains one run: `python -m albert_lab.runs.worker FOLDER [TASK]...`."""

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_lab import own_code, paths, signals
from albert_lab.errors import FIXABLE, FULL, REFUSED, STOPPED, UNWRITTEN, LostProcessError, MissingDataError
from albert_lab.machine import Rank, read_rank
from albert_lab.messages import Say, to_stderr
from albert_lab.runs import preparing, results
from albert_lab.runs.finetunings import Seeds, missing, train
from albert_lab.runs.run import FAILURE, LOCK, TRACEBACK, Run, check_text, is_trained, read, use_threads
from albert_lab.storage import locked, write_atomically

if TYPE_CHECKING:  # it loads torch, and the thread count must be set before that
    from albert_lab.training.pretrain import Inherited


def main(
    folder: Path,
    tasks: Sequence[str] = (),
    seeds: Seeds = None,
    include: Sequence[Path] = (),
    *,
    with_random: bool = False,
    prepare: bool = False,
) -> int:
    """Train or resume one run and its fine-tunings on tasks, and return the exit code.

    with_random: also fine-tune random weights of its shape. include has files of own code, of run and tasks. prepare:
    only prepare its data.

    Of several processes that torchrun started, all but the first only help to pre-train.

    0 done (reasons of failed fine-tunings are recorded); 1 failed; 2 invalid configuration; 4 missing data; 75 stopped
    by SIGTERM, or another process of the run was lost, resumable; 130 stopped by Ctrl-C, resumable; 74 the disk is
    full, resumable.
    """
    rank = read_rank()

    def say_any(text: str) -> None:
        to_stderr(f"{folder.name.rpartition('_')[0] or folder.name}: {text}")

    say = say_any if rank.leads else lambda _line: None
    with nullcontext([]) if prepare else signals.deferred() as stopped_by:
        is_stopped = partial(bool, stopped_by)
        try:
            with locked(folder / LOCK, say, is_stopped) if rank.leads else nullcontext():
                run = read(folder)
                if not prepare:
                    use_threads(folder, run.config, rank)
                for file in include:  # now: it may load torch
                    own_code.include(file)
                own_code.check(run.own_code, run.name)
                if rank.leads and not prepare:
                    (folder / FAILURE).unlink(missing_ok=True)  # of an earlier try
                if not is_trained(folder):
                    check_text(run)
                if prepare:
                    preparing.prepare_all([run], say)
                    return 0
                if _pretrain(run, folder, say, is_stopped, rank):
                    todo = missing(run, tasks, seeds, with_random=with_random) if rank.leads else []
                    if train(todo, say, is_stopped):
                        return 0
                say("stopped; its state is saved, and the same command resumes from there")
        except Exception as error:
            if not stopped_by and not isinstance(error, LostProcessError):
                return _fail(folder, say_any, error, is_recorded=rank.leads)
            # The signal may have ended other processes and caused this error; any other error will occur again.
            say(f"stopped; the same command resumes from the last checkpoint ({error!r})")
        # Without a signal here, another process of the run received one.
        return signals.exit_code() or STOPPED


def _fail(folder: Path, say: Say, error: Exception, *, is_recorded: bool) -> int:
    own = own_code.suspected(error)
    is_fixable = isinstance(error, FIXABLE) or getattr(error, "errno", None) in REFUSED
    text = own or str(error) or type(error).__name__
    say(f"failed: {text}")
    if getattr(error, "errno", None) in FULL:
        return UNWRITTEN
    if is_recorded:
        write_atomically(folder / FAILURE, text + "\n")
    if is_recorded and not is_fixable:
        (folder / TRACEBACK).write_text("".join(traceback.format_exception(error)))
    return 4 if isinstance(error, MissingDataError) else 2 if own or is_fixable else 1


def _pretrain(run: Run, folder: Path, say: Say, is_stopped: Callable[[], bool], rank: Rank) -> bool:
    """Prepare the data, train, evaluate; the leading process writes the record. False if stopped before the end.

    Raises:
        LostProcessError: another process of the run was lost.
    """
    if rank.of == 1 and is_trained(folder):  # several processes tell each other
        return True
    import torch

    from albert_lab.data.batches import StagedBatches
    from albert_lab.training.device import check_memory, choose_device, choose_precision
    from albert_lab.training.evaluate import Evaluator
    from albert_lab.training.log import MetricsLog, tracked
    from albert_lab.training.pretrain import Pretrainer
    from albert_lab.training.processes import joined

    config, commit = run.config, None
    if rank.leads:  # in a job, only this process knows its machine
        commit = results.commit_of(paths.PACKAGE.parent)  # now: the files may change while the run trains
        check_memory(config)
    threads = use_threads(folder, config, rank)
    torch.set_num_threads(threads)
    device = choose_device(config.machine.device, rank)
    with joined(device, rank) as processes, ExitStack() as stack:
        if processes.any(rank.leads and is_trained(folder)):
            return True
        with processes.leader_first():
            data = preparing.load(config, say)
        log = track = None
        if processes.leads:
            track = stack.enter_context(tracked(config.machine.report_to, run.name, folder, config.identity()))
            log = MetricsLog(folder, lambda line: _show(line, say), track)
        texts = (data.fitted_on, data.dev, data.tokenizer, data.floors)
        evaluator = Evaluator(config, *texts, device, lambda: processes.any(is_stopped()))
        pretrainer = Pretrainer(
            config,
            run_name=run.name,
            folder=folder,
            batches=StagedBatches(data.train, data.tokenizer, config),
            evaluator=evaluator,
            log=log,
            is_stopped=is_stopped,
            say=say,
            start=_start(run),
            processes=processes,
        )
        trained = pretrainer.run()
        if trained is None:
            return False
        devices = processes.devices(device)
        if log and track:
            precision = choose_precision(config.machine.precision, device)
            made_with = {"device": device.type, "precision": precision, "threads": threads, "commit": commit}
            record = results.make_record(run, trained, data.train, data.dev, devices, **made_with)
            results.write(folder, record)
            scores = {name: score.value for name, score in record.scores.items()}
            track({"event": "final", "step": trained.progress.steps} | scores)
    return True


def _show(line: dict[str, Any], say: Say) -> None:
    """Say the losses of an evaluation; `albert-lab status` has those of the steps."""
    if line["event"] == "evaluation":
        losses = (f"{key} {value:.3f}" for key, value in line.items() if key.endswith("_loss") and value is not None)
        say(f"step {line['step']:,}, held out: {', '.join(losses)}")


def _start(run: Run) -> "Inherited | None":
    from albert_lab.model.shape import EncoderShape
    from albert_lab.training.pretrain import Inherited

    if run.start_from is None:
        return None
    folder = paths.runs() / run.start_from.run
    if not is_trained(folder):
        raise MissingDataError(f"{run.name} starts from {run.start_from.run}, which is not finished")
    shape = EncoderShape.from_config(read(folder).config)
    return Inherited(run.start_from.run, folder, shape, run.start_from.keep)


def command(arguments: Sequence[str]) -> int:
    """Train the run of FOLDER [TASK]... [--seeds SEED...] in this process, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m albert_lab.runs.worker")
    parser.add_argument("folder", type=Path)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="+", help="of the fine-tunings; those of each task unless given")
    parser.add_argument("--with-random", action="store_true", help="also fine-tune random weights of its shape")
    parser.add_argument("--prepare", action="store_true", help="only prepare its data")
    parser.add_argument("--include", type=Path, action="append", default=[], help="own code")
    parser.add_argument("--conf", type=Path, action="append", default=[], help="own options, such as tasks")
    asked = vars(parser.parse_args(arguments))
    paths.use_conf(asked.pop("conf"))
    return main(**asked)


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
