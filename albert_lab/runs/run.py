"""A run: its identity, its folder, and its run.yaml, from which the process of the run starts."""

import glob
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, TypeAdapter

from albert_lab import files, own_code, paths, storage
from albert_lab.config.schema import RESULTS_VERSION, Keep, RunConfig, digest
from albert_lab.config.section import BUILT_IN
from albert_lab.errors import ConfigError, DamagedFileError
from albert_lab.files import Name, Record
from albert_lab.machine import ALONE, JOBS, THREADS, Rank, cores, gpus, whole_number
from albert_lab.messages import Say
from albert_lab.storage import write_atomically

RUN_FILE = "run.yaml"
RECORD = "results.json"
IMPORT = "import.json"
FAILURE = "failure.txt"
MACHINE = "machine.json"
LOCK = "lock"
TRACEBACK = "traceback.txt"
REMEDY = "remove the folder, and run its command again"
_NO_LINK = "put a copy of what it leads to in its place, or remove it"
# The settings that name what computes a model, and that own code can add values to.
_MODEL_PARTS = ("attention_block", "ffn_block", "position_encoding", "model.hidden_act")


class StartFrom(Record):
    """The name of the run that another one starts from, and what is kept of it: its training, or
    only its weights.
    """

    run: Name
    keep: Keep


@dataclass(frozen=True)
class Run:
    """A run: its configuration, the fingerprints of its data, and the name that follows from them.

    own_code has the digest of each included file that its training may depend on, by its name.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # it is read from run.yaml

    config: RunConfig
    fingerprints: dict[str, str]
    start_from: StartFrom | None = None
    own_code: Mapping[Name, str] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """A readable prefix and a hash of everything that determines the numbers."""
        config = self.config
        content = {
            "config": config.identity(),
            "fingerprints": self.fingerprints,
            "version": RESULTS_VERSION,
        }
        if self.start_from:
            content["start_from"] = self.start_from.model_dump()
        if self.own_code:
            content["own_code"] = sorted(self.own_code.values())
        shape = f"{config.model.name}-L{config.model.num_layers}-E{config.embedding_size}"
        loss = config.inter_sentence.name
        return f"{loss}_{config.sharing.name}_{shape}_seed{config.seed}_{digest(content)}"

    @property
    def training(self) -> dict[str, Any]:
        """What decides its weights: less than its name, which also says what it is scored on.

        Raises:
            ConfigError: a run that it starts from is gone.
        """
        config = self.config.identity()
        del config["corpus"]["name"]
        for key in ("num_pairs", "num_probe_pairs", "batch_size"):
            del config["evaluation"][key]
        start = self.start_from
        return {
            "config": config,
            "fingerprints": self.fingerprints,
            "own_code": sorted(self.own_code.values()),
            "start_from": start and [_training_of(start.run), start.keep],
        }

    @property
    def folder(self) -> Path:
        return paths.runs() / self.name

    @property
    def evaluation_set(self) -> str:
        """Identity of the held-out sets that the run is scored on; only scores with the same one
        are comparable.
        """
        config = self.config
        content = {
            # An added corpus is only trained on, never held out.
            "fingerprints": {
                key: value for key, value in self.fingerprints.items() if key != "added_corpus"
            },
            "corpus": config.identity()["corpus"],
            "masking": config.masking.model_dump(exclude={"method"}),
            "max_sequence_length": config.max_sequence_length,
            "short_sequence_probability": config.short_sequence_probability,
            "num_pairs": config.evaluation.num_pairs,
            "seed": config.evaluation.seed,
            "version": RESULTS_VERSION,
        }
        return digest(content)


def _training_of(name: str) -> object:
    """What decides the weights of a run of this name; of an imported model, its name."""
    run = read(paths.runs() / name)
    return name if (run.folder / IMPORT).exists() else run.training


def same_training(run: Run) -> Run | None:
    """A finished run with the weights of this one, which is scored on something else; None if there
    is none, or if its weights are gone.
    """
    described = run.name.rpartition("_")[0]
    for checkpoint in sorted(paths.runs().glob(f"{glob.escape(described)}_*/checkpoint/step-*")):
        folder = checkpoint.parents[1]
        is_finished = (folder / RECORD).exists() and (folder / "metrics.jsonl").exists()
        if folder.name != run.name and is_finished:
            with suppress(ConfigError):  # damaged, or of an earlier version of the results
                other = read(folder)
                if other.training == run.training:
                    return other
    return None


def plan(config: RunConfig, start_from: StartFrom | None = None) -> Run:
    """The run of a configuration and its start; reads the text to compute its fingerprint.

    Raises:
        ConfigError: text cannot be read. MissingDataError: text or a file is missing.
    """
    from albert_lab.data.corpus import corpora_of
    from albert_lab.data.files import fingerprint
    from albert_lab.data.vocabulary import tokenizer_fingerprint

    fingerprints = {
        "corpus": fingerprint(config.corpus),
        "tokenizer": tokenizer_fingerprint(config),
    }
    for added in corpora_of(config)[1:]:
        fingerprints["added_corpus"] = fingerprint(added)
    return Run(config, fingerprints, start_from, own_code.of_training())


def create(run: Run) -> Path:
    """Create the run's folder and return it.

    The name of a run depends neither on paths nor on machine.* (but for a budget in seconds), so
    its run.yaml gets those of the last command, unless a process trains the run.
    """
    folder = run.folder
    folder.mkdir(parents=True, exist_ok=True)
    if not is_locked(folder):
        write_run_file(run, folder)
    return folder


def write_run_file(run: Run, folder: Path) -> None:
    content = {"name": run.name, "results_version": RESULTS_VERSION}
    content |= TypeAdapter(Run).dump_python(run, mode="json")
    write_atomically(folder / RUN_FILE, OmegaConf.to_yaml(OmegaConf.create(content)))


def read(folder: Path) -> Run:
    """The run of a folder.

    Raises:
        ConfigError: there is no run.yaml.
        DamagedFileError: it cannot be read, or its content does not match its name.
    """
    file = folder / RUN_FILE
    if not file.is_file():
        raise ConfigError(f"{folder} is no run folder: it has no {RUN_FILE}")
    content = files.read_yaml(file, REMEDY)
    name = content.pop("name", None)
    version = content.pop("results_version", None)
    if version != RESULTS_VERSION:
        raise DamagedFileError(
            file, f"results_version={version}, and this albert-lab makes {RESULTS_VERSION}", REMEDY
        )
    # in JSON lists become tuples
    run = files.check(file, json.dumps(content, default=str).encode(), Run, REMEDY)
    if run.name != name:
        raise DamagedFileError(
            file, f"changed by hand: its name is {name}, its content that of {run.name}", REMEDY
        )
    return run


def find(text: str) -> Path:
    """The folder of a run by the name of an imported model, which runs that start from it have,
    too, by its path, or by a part of its name that fits no other run.

    Raises:
        ConfigError: several runs fit, or none.
    """
    folders = sorted(file.parent for file in paths.runs().glob(f"*/{RUN_FILE}"))
    fitting = [folder for folder in folders if text in folder.name]
    imported = [
        folder for folder in fitting if f"_{text}-L" in folder.name and (folder / IMPORT).exists()
    ]
    path = paths.expanded(text)
    if not imported and path.is_dir():
        return path
    fitting = imported or fitting
    if len(fitting) != 1:
        shown = ", ".join(folder.name for folder in fitting[:3]) or "none"
        raise ConfigError(
            f"{text} is no folder, and fits {len(fitting)} runs in {paths.runs()} ({shown}): give "
            "the name of one folder there"
        )
    return fitting[0]


class _Machine(Record):
    """How a run is trained: the threads of each process, the processes on this machine, and the
    most runs that it ever trained beside, itself too; 0 if that is not known.
    """

    threads: PositiveInt
    processes: PositiveInt
    jobs: NonNegativeInt


class _Import(BaseModel):
    """The key of import.json that is read; the file has more."""

    missing_parts: tuple[str, ...]


def read_import(folder: Path) -> _Import | None:
    """What an imported model lacks; None if the run is none."""
    file = folder / IMPORT
    remedy = "remove the folder, and import the model again"
    return files.read_json(file, _Import, remedy) if file.exists() else None


def failure_in(file: Path) -> str:
    """The reason in the file of a failure."""
    return files.read_bytes(file).decode(errors="replace").strip()


def is_trained(folder: Path) -> bool:
    """Whether the weights in a run's folder are final: it is finished, or an imported model."""
    return (folder / RECORD).exists() or (folder / IMPORT).exists()


def config_here(run: Run) -> RunConfig:
    """The configuration for work with the weights of a run on this machine.

    Raises:
        ConfigError: a part of its model is of own code that is not included, or its tokenizer is
            gone or was changed. MissingDataError: the text of its tokenizer does not exist.
    """
    # Its optimizer and its measures made its weights and scores, and are not needed for either.
    if any(run.config.value(part) not in BUILT_IN[part] for part in _MODEL_PARTS):
        own_code.check(run.own_code, run.name)
    config = with_tokenizer(run.config, run)
    machine = run.config.machine
    if machine.device != "cuda" or gpus():
        return config
    return config.model_copy(update={"machine": machine.model_copy(update={"device": "auto"})})


def with_tokenizer(config: RunConfig, run: Run) -> RunConfig:
    """A configuration with the tokenizer of a run: by its file, if its text gives another one or
    the runs were moved.

    Raises:
        ConfigError: the file has other content, or is gone. MissingDataError: the text does not
            exist.
    """
    from albert_lab.data.vocabulary import find_tokenizer, tokenizer_fingerprint

    file = find_tokenizer(config)
    moved = paths.runs() / file.parent.name / file.name
    if not file.is_file() and moved.is_file():
        file = moved
        config = with_file(config, file)
    trained_with = run.fingerprints["tokenizer"]
    if tokenizer_fingerprint(config) == trained_with:
        return config
    if config.tokenizer.model_file is None:
        file = file.parent.with_name(trained_with) / file.name
        if file.is_file():
            return with_file(config, file)
    raise ConfigError(
        f"{run.name} was trained with {file}, which is gone or not as it was: put it back"
    )


def with_file(config: RunConfig, file: Path) -> RunConfig:
    """A configuration with this model file of a tokenizer."""
    return config.model_copy(
        update={"tokenizer": config.tokenizer.model_copy(update={"model_file": str(file)})}
    )


def check_text(run: Run) -> None:
    """Raises ConfigError if the text of a run is not what it was when the run was planned."""
    for key, fingerprint in plan(run.config).fingerprints.items():
        if run.fingerprints.get(key, fingerprint) != fingerprint:
            raise ConfigError(
                f"its {key} is not what it was when {run.name} was planned: repeat its command"
            )


@contextmanager
def held(folder: Path, say: Say, is_stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Holds the lock of a run within this context, in which its folder is written.

    Raises:
        DamagedFileError: a file or folder in it is a link, through which others would be written.
        filelock.Timeout: stopped while waiting for another process.
    """
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise DamagedFileError(
                path, "is a link, and a run writes in its own folder alone", _NO_LINK
            )
    with storage.locked(folder / LOCK, say, is_stopped):
        yield


def is_locked(folder: Path) -> bool:
    return storage.is_locked(folder / LOCK)


def share_of_threads(config: RunConfig, processes: int) -> int:
    """The threads of each of the processes of a run: those asked for, or its share of the cores."""
    share = whole_number(THREADS) or cores()
    return config.machine.threads or max(1, share // processes)


def use_threads(folder: Path, config: RunConfig, rank: Rank = ALONE) -> int:
    """Set the thread count with which the run began, before torch is imported, and return it: it
    affects rounding.

    If the number of processes on the machine changes, rounding changes anyway, and the cores are
    divided again.
    """
    file = folder / MACHINE
    processes = config.machine.processes if rank.total == 1 else rank.total_here
    threads = share_of_threads(config, processes)
    jobs = whole_number(JOBS) or 0
    if file.exists():
        remedy = "remove it: the run then resumes with the threads of this machine"
        began = files.read_json(file, _Machine, remedy)
        jobs = max(jobs, began.jobs) if jobs and began.jobs else 0
        if began.processes == processes:
            threads = began.threads
    if rank.leads:
        write_atomically(
            file,
            _Machine(threads=threads, processes=processes, jobs=jobs).model_dump_json() + "\n",
        )
    os.environ |= {"OMP_NUM_THREADS": str(threads), JOBS: str(jobs)}
    return threads
