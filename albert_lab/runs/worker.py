"""The process that makes one run: `python -m albert_lab.runs.worker FOLDER [TASK]...`."""

import argparse
import json
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from albert_lab import paths
from albert_lab.errors import INTERRUPTED, STOPPED, ConfigError, MissingDataError
from albert_lab.runs import finetunings, results
from albert_lab.runs.progress import Place, RunProgress
from albert_lab.runs.recording import make_record, provenance
from albert_lab.runs.run import FAILURE, LOCK, TRACEBACK, Run, read, use_threads
from albert_lab.runs.states import PRETRAINED, state
from albert_lab.storage import write_atomically

if TYPE_CHECKING:
    from albert_lab.training.start import Start


def main(folder: Path, tasks: Sequence[str] = (), seeds: finetunings.Seeds = None, place: str | None = None) -> int:
    """Make one run and its fine-tunings on tasks, or finish them, and return the exit code; place is that in a study.

    0 done (a fine-tuning that failed has left its reason); 1 failed; 2 a configuration that does not fit; 4 missing
    data; 75 stopped by SIGTERM and resumable; 130 stopped by Ctrl-C and resumable.
    """
    stopped_by: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: stopped_by.append(number))
    try:
        lock = FileLock(folder / LOCK).acquire(cancel_check=lambda: bool(stopped_by))
    except Timeout:  # stopped while another process makes the run
        return _exit_code(stopped_by)
    with lock:
        progress = RunProgress(folder.name.rpartition("_")[0] or folder.name, Place.read(place))
        try:
            if _make(folder, tasks, seeds, progress, lambda: bool(stopped_by)):
                return 0
            progress.say("stopped; its state is saved, and the same command resumes it")
            return _exit_code(stopped_by)
        except ConfigError as error:
            return _fail(folder, progress, error, 2)
        except MissingDataError as error:
            return _fail(folder, progress, error, 4)
        except Exception as error:
            return _fail(folder, progress, error, 1)
        finally:
            progress.close()


def _exit_code(stopped_by: Sequence[int]) -> int:
    return INTERRUPTED if stopped_by[0] == signal.SIGINT else STOPPED


def _fail(folder: Path, progress: RunProgress, error: Exception, code: int) -> int:
    text = str(error) or type(error).__name__
    progress.say(f"failed: {text}")
    if code != 1:  # the user's to mend, after which the same command is to go on
        return code
    try:
        (folder / TRACEBACK).write_text("".join(traceback.format_exception(error)))
        write_atomically(folder / FAILURE, json.dumps({"error": text}) + "\n")
    except OSError as unwritten:  # the disk may be what failed
        progress.say(f"the failure could not be noted: {unwritten}")
    return code


def _make(
    folder: Path,
    tasks: Sequence[str],
    seeds: finetunings.Seeds,
    progress: RunProgress,
    is_stopped: Callable[[], bool],
) -> bool:
    """Pre-train where there is no record yet, then fine-tune; False when stopped before the end."""
    run = read(folder)
    use_threads(folder, run.config)
    if state(folder) not in PRETRAINED and not _pretrain(run, folder, progress, is_stopped):
        return False
    return finetunings.make(run, tasks, progress.say, is_stopped, seeds, progress.show_finetuning)


def _pretrain(run: Run, folder: Path, progress: RunProgress, is_stopped: Callable[[], bool]) -> bool:
    """Prepare the data, train, evaluate, write the record; False when stopped before the end."""
    from albert_lab.data.prepare import prepare
    from albert_lab.data.shards import open_shards
    from albert_lab.data.tokenizer import load_tokenizer

    config = run.config
    threads = use_threads(folder, config)
    shards = prepare(config, progress.say)
    tokenizer = load_tokenizer(config)
    train, dev = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))

    import torch

    from albert_lab.data.batches import Batches
    from albert_lab.data.lexical_floor import find_or_fit
    from albert_lab.training.device import autocast, choose_device, choose_precision
    from albert_lab.training.evaluate import PAIR_OPTIONS, Evaluator, make_sets
    from albert_lab.training.log import MetricsLog
    from albert_lab.training.pretrain import Pretrainer

    torch.set_num_threads(threads)
    device = choose_device(config.machine.device)
    precision = choose_precision(config.machine.precision, device)
    batches = Batches(train, tokenizer, config)
    floors = find_or_fit(config, train, dev, PAIR_OPTIONS, progress.say)
    pretrainer = Pretrainer(
        config,
        run_name=run.name,
        folder=folder,
        batches=batches,
        evaluator=Evaluator(
            sets=make_sets(train, dev, tokenizer, config, floors),
            kinds=[label.kind for label in config.inter_sentence.labels],
            batch_size=config.evaluation.batch_size,
            device=device,
            autocast=autocast(precision, device),
            is_stopped=is_stopped,
        ),
        log=MetricsLog(folder, progress.show, tensorboard=config.machine.tensorboard),
        is_stopped=is_stopped,
        say=progress.say,
        start=_start(run),
    )
    trained = pretrainer.run()
    if trained is None:
        return False
    results.write(folder, make_record(run, trained, batches, train, dev, provenance(device.type, precision, threads)))
    return True


def _start(run: Run) -> "Start | None":
    from albert_lab.model.shape import EncoderShape
    from albert_lab.training.start import Start

    if run.start_from is None:
        return None
    folder = paths.runs() / run.start_from.run
    if state(folder) not in PRETRAINED:
        raise MissingDataError(f"{run.name} starts from {run.start_from.run}, which is not finished")
    shape = EncoderShape.from_config(read(folder).config)
    return Start(run.start_from.run, folder, shape, run.start_from.keep)


def command(words: Sequence[str]) -> int:
    """Make the run that a child process is told to, FOLDER [TASK]... [--seeds SEED...], and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m albert_lab.runs.worker")
    parser.add_argument("folder", type=Path)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="+", help="of the fine-tunings; those of each task unless given")
    parser.add_argument("--place", help="in a study: see runs/progress.py")
    return main(**vars(parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
