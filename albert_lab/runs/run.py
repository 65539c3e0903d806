"""A run: its identity, its folder, and the run.yaml in it from which the process that makes it can start."""

import difflib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from omegaconf import OmegaConf

from albert_lab import paths
from albert_lab.config.compose import validate
from albert_lab.config.schema import RESULTS_VERSION, Keep, RunConfig, digest
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.machine import cores
from albert_lab.storage import write_atomically

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
    from albert_lab.data.tokenizer.cache import tokenizer_fingerprint

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


def is_locked(folder: Path) -> bool:
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True


def use_threads(folder: Path, config: RunConfig) -> int:
    """The thread count that the run began with, set before torch is imported: other counts give other sums."""
    file = folder / MACHINE
    if not file.exists():
        threads = config.machine.threads or int(os.environ.get("ALBERT_LAB_THREADS") or cores())
        write_atomically(file, json.dumps({"threads": threads}) + "\n")
    threads = json.loads(file.read_text())["threads"]
    os.environ["OMP_NUM_THREADS"] = str(threads)
    return threads
