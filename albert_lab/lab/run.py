"""One run, from its folder: `python -m albert_lab.lab.run FOLDER [TASK]...` trains, evaluates, records, fine-tunes."""

import argparse
import difflib
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock, Timeout
from omegaconf import OmegaConf

from albert_lab import paths
from albert_lab.config import validate
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.lab import downstream, results
from albert_lab.lab.launchers import INTERRUPTED, STOPPED
from albert_lab.lab.progress import RunProgress
from albert_lab.lab.recording import make_record, provenance
from albert_lab.machine import cores
from albert_lab.sections import RESULTS_VERSION, Keep, RunConfig, digest
from albert_lab.storage import write_atomically

if TYPE_CHECKING:
    from albert_lab.training.start import Start

State = Literal["done", "recorded", "imported", "failed", "running", "stopped", "missing"]

# States in which there are weights that nothing more is done to.
PRETRAINED = ("done", "imported")
# States in which all numbers are there: in the run's folder, or in reports alone.
FINISHED = ("done", "recorded")

RUN_FILE = "run.yaml"
IMPORT = "import.json"
FAILURE = "failure.json"
MACHINE = "machine.json"
LOCK = "lock"
TRACEBACK = "traceback.txt"


@dataclass(frozen=True)
class StartFrom:
    """The run that another one begins from, by name, and what is kept of it: its training, or its weights alone."""

    run: str
    keep: Keep


@dataclass(frozen=True)
class Run:
    """A run that can be made: its configuration, the fingerprints of what it reads, and the name they give."""

    config: RunConfig
    fingerprints: dict[str, str]
    start_from: StartFrom | None = None

    @property
    def name(self) -> str:
        """A readable prefix and a hash of everything that decides the numbers."""
        config = self.config
        content = {"config": config.identity(), "fingerprints": self.fingerprints, "version": RESULTS_VERSION}
        if self.start_from:
            content["start_from"] = asdict(self.start_from)
        shape = f"{config.model.name}-L{config.model.num_layers}-E{config.embedding_size}"
        words = [config.inter_sentence.name, config.sharing.name, shape]
        return "_".join([*words, f"seed{config.seed}", digest(content)])

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return paths.runs() / self.name

    @property
    def evaluation_set(self) -> str:
        """Identity of the held-out sets that the run is scored on; scores compare only where it is the same."""
        config = self.config
        content = {
            # What is added to the corpus is trained on and never held out.
            "fingerprints": {key: value for key, value in self.fingerprints.items() if key != "added_corpus"},
            "corpus": config.identity()["corpus"],
            "masking": config.masking.model_dump(),
            "max_sequence_length": config.max_sequence_length,
            "short_sequence_probability": config.short_sequence_probability,
            "num_pairs": config.evaluation.num_pairs,
            "seed": config.evaluation.seed,
        }
        return digest(content)


def plan(config: RunConfig, start_from: StartFrom | None = None) -> Run:
    """The run that a configuration, and what it starts from, stand for; reads the text to take its fingerprint.

    Raises:
        ConfigError: text that cannot be read. MissingDataError: text or a file that is not there.
    """
    from albert_lab.data.corpus import added_to, fingerprint
    from albert_lab.data.tokenizer import tokenizer_fingerprint

    fingerprints = {"corpus": fingerprint(config.corpus), "tokenizer": tokenizer_fingerprint(config)}
    if added := added_to(config.corpus, config.added_corpus):
        try:
            fingerprints["added_corpus"] = fingerprint(added)
        except MissingDataError as error:
            raise MissingDataError(f"added_corpus={added.name}: {error}") from error
    return Run(config, fingerprints, start_from)


def create(run: Run) -> Path:
    """The run's folder, with a run.yaml that says how to go on with it; of a run that is being made it stays."""
    run.folder.mkdir(parents=True, exist_ok=True)
    # The name leaves machine.* and paths out: they may differ from those of the last time, and the new ones are meant.
    if not is_locked(run.folder):
        write_run_file(run, run.folder)
    return run.folder


def write_run_file(run: Run, folder: Path) -> None:
    """Write the run.yaml of a run into a folder, atomically."""
    content = {
        "name": run.name,
        "results_version": RESULTS_VERSION,
        "fingerprints": run.fingerprints,
        "start_from": asdict(run.start_from) if run.start_from else None,
        "config": run.config.model_dump(mode="json"),
    }
    write_atomically(folder / RUN_FILE, OmegaConf.to_yaml(OmegaConf.create(content)))


def find(text: str) -> Path:
    """The folder that the name of a run, or a path, stands for.

    Raises:
        ConfigError: there is neither; names the run that is nearest.
    """
    named, folder = paths.runs() / text, Path(text).expanduser()
    if (named / RUN_FILE).is_file():
        return named
    if folder.is_dir():
        return folder
    near = difflib.get_close_matches(text, [run.name for run in paths.runs().glob("*/")], n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(f"{text} is neither a folder nor a run in {paths.runs()}{hint}")


def check_finished(folder: Path) -> None:
    """Raise ConfigError unless a folder holds a run that was finished or imported."""
    name = read(folder).name
    if state(folder) not in PRETRAINED:
        raise ConfigError(f"{name} is not finished (it is {state(folder)}): finish it by the command it is of")


def read(folder: Path) -> Run:
    """The run that a folder holds.

    Raises:
        ConfigError: no run.yaml, or one that does not give the name it says.
    """
    file = folder / RUN_FILE
    if not file.is_file():
        raise ConfigError(f"{folder} is no run folder: it has no {RUN_FILE}")
    content: Any = OmegaConf.to_container(OmegaConf.load(file))
    start_from = StartFrom(**content["start_from"]) if content["start_from"] else None
    run = Run(validate(content["config"]), content["fingerprints"], start_from)
    if content["results_version"] == RESULTS_VERSION and run.name != content["name"]:
        raise ConfigError(f"{file} was changed by hand: it says {content['name']}, its content is {run.name}")
    return run


def state(folder: Path) -> State:
    """How far a pre-training is: done, imported, failed, running (its lock is held), stopped half way, or missing."""
    if (folder / results.RECORD).exists():
        return "done"
    if (folder / IMPORT).exists():
        return "imported"
    if not folder.is_dir():
        return "missing"
    if is_locked(folder):
        return "running"
    if (folder / FAILURE).exists():
        return "failed"
    return "stopped" if (folder / MACHINE).exists() else "missing"


def state_with(run: Run, tasks: Sequence[str], seeds: downstream.Seeds = None) -> State:
    """How far a run with its fine-tunings is."""
    pretrained = state(run.folder)
    if pretrained != "done" or not (missing := downstream.missing(run, tasks, seeds)):
        return pretrained
    if is_locked(run.folder):
        return "running"
    return "failed" if len(downstream.failures(run, tasks, seeds)) == len(missing) else "stopped"


def is_locked(folder: Path) -> bool:
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True


def failure(folder: Path) -> str:
    """Why a run failed, in one line."""
    return json.loads((folder / FAILURE).read_text())["error"]


def forget_failure(folder: Path) -> None:
    """Make a failed run, or its failed fine-tunings, be gone on with, from the last checkpoint."""
    (folder / FAILURE).unlink(missing_ok=True)
    downstream.forget_failures(folder)


def forget(folder: Path) -> None:
    """Make a run be made again from the start."""
    forget_failure(folder)
    for name in (results.RECORD, results.METRICS, results.LAYERS, MACHINE):
        (folder / name).unlink(missing_ok=True)
    for name in ("checkpoint", downstream.FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)


def use_threads(folder: Path, config: RunConfig) -> int:
    """The thread count that the run began with, set before torch is imported: other counts give other sums."""
    file = folder / MACHINE
    if not file.exists():
        threads = config.machine.threads or int(os.environ.get("ALBERT_LAB_THREADS") or cores())
        write_atomically(file, json.dumps({"threads": threads}) + "\n")
    threads = json.loads(file.read_text())["threads"]
    os.environ["OMP_NUM_THREADS"] = str(threads)
    return threads


def main(folder: Path, tasks: Sequence[str] = (), seeds: downstream.Seeds = None) -> int:
    """Make one run and its fine-tunings on tasks, or finish them, and return the exit code.

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
        progress = RunProgress(folder.name.rpartition("_")[0] or folder.name)
        try:
            if _make(folder, tasks, seeds, progress, lambda: bool(stopped_by)):
                return 0
            progress.say("stopped; its state is saved, and the same command goes on from there")
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
    seeds: downstream.Seeds,
    progress: RunProgress,
    is_stopped: Callable[[], bool],
) -> bool:
    """Pre-train where there is no record yet, then fine-tune; False when stopped before the end."""
    run = read(folder)
    use_threads(folder, run.config)
    if state(folder) not in PRETRAINED and not _pretrain(run, folder, progress, is_stopped):
        return False
    return downstream.make(run, tasks, progress.say, is_stopped, seeds)


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
    parser = argparse.ArgumentParser(prog="python -m albert_lab.lab.run")
    parser.add_argument("folder", type=Path)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="+", help="of the fine-tunings; those of each task unless given")
    return main(**vars(parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
