"""What is made of a finished run on request: fine-tunings with other seeds and settings; the change by each layer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter
from tabulate import tabulate

from albert_lab import files, own_code, paths
from albert_lab.config.schema import digest
from albert_lab.config.section import SEEDS
from albert_lab.errors import ConfigError
from albert_lab.messages import Say
from albert_lab.runs import finetunings, results, states
from albert_lab.runs import run as runs
from albert_lab.storage import write_atomically
from albert_lab.tasks.records import FinetuningRecord, output_folder, summarize
from albert_lab.tasks.task import TaskConfig
from albert_lab.training.layers import Layer


@dataclass(frozen=True)
class Wanted:
    """The requested fine-tunings: tasks, seeds (None: those of the scale), overrides of the tasks' files."""

    tasks: Sequence[str]
    seeds: Sequence[int] | None
    overrides: Sequence[str]
    is_random: bool


def read_seeds(text: str) -> list[int]:
    """Seeds from a text such as 0,1,2.

    Raises:
        ConfigError: any other text.
    """
    seeds = [int(part) for part in text.split(",") if part.isdecimal() and int(part) < SEEDS]
    if len(set(seeds)) < len(text.split(",")):
        raise ConfigError(f"--seeds {text}: different whole numbers below {SEEDS} with commas between, as in 0,1,2")
    return seeds


def find_run(name: str) -> runs.Run:
    """A finished or imported run by its name or folder.

    Raises:
        ConfigError: an unknown run, one of another results version, or an unfinished one.
    """
    folder = runs.find(name)
    run = runs.read(folder)
    if run.folder.resolve() != folder.resolve():
        raise ConfigError(f"{folder} is not the folder of its run, which is {run.folder}: check ALBERT_LAB_HOME")
    states.check_finished(folder)
    return run


def finetune_run(name: str, wanted: Wanted, say: Say) -> list[FinetuningRecord]:
    """The records of fine-tunings of a run; makes missing ones, after waiting for other processes of the run.

    Raises:
        ConfigError, MissingDataError: the run, a task or its data is missing, or settings are invalid.
        DivergedError: the loss was not finite.
    """
    if not wanted.tasks:
        raise ConfigError("--tasks none: name a task to fine-tune on")
    run = find_run(name)
    scale = run.config.scale.name
    if unused := [text for text in wanted.overrides if re.match(rf"settings\.(?!{re.escape(scale)}\.)", text)]:
        raise ConfigError(f"{unused[0]}: the run has scale={scale}, so this changes nothing (settings.{scale} does)")
    tasks = [*finetunings.load_named(wanted.tasks, wanted.overrides).values()]
    for task in tasks:  # before anything is trained
        task.fitted(run.config)
        finetunings.check_data(task)
    runs.use_threads(run.folder, run.config)
    start = finetunings.random_weights(run) if wanted.is_random else run
    with runs.locked(start.folder, say):
        return _finetune(start, tasks, wanted, say)


def _finetune(run: runs.Run, tasks: Sequence[TaskConfig], wanted: Wanted, say: Say) -> list[FinetuningRecord]:
    from albert_lab.tasks.finetune import finetune

    start, records = finetunings.start_of(run, say), []
    if wanted.overrides:  # kept separately: the records in the run folder are those of the tables
        start = replace(start, folder=start.folder / f"settings-{digest(list(wanted.overrides))}")
    for task in tasks:
        for seed in wanted.seeds or task.fitted(run.config).seeds:
            record = finetune(start, task, seed, data=paths.tasks_data(), say=say)
            assert record is not None, "nothing stops it but a signal, which ends this process"
            say(f"{finetunings.describe(record)}; predictions in {output_folder(start.folder, task.name, seed)}")
            records.append(record)
    return records


def as_text(records: Sequence[FinetuningRecord]) -> str:
    """Fine-tunings as a table, a line a task."""
    body = []
    for task in dict.fromkeys(record.task for record in records):
        seeds = [record for record in records if record.task == task]
        first, (best, last) = seeds[0], summarize(seeds)
        bounds = "" if best.low is None else f" [{best.low:.1f}, {best.high:.1f}]"
        by_seed = (f"{record.best.main.value:.1f}{' (did not learn)' * bool(record.diverged)}" for record in seeds)
        row = {
            "task": first.title,
            "weights": first.weights,
            "median of best": f"{best.value:.1f}{bounds}",
            "best by seed": ", ".join(by_seed),
            "last": f"{last.value:.1f}",
            "constant": f"{best.floor:.1f}",
            "bag of words": "" if best.lexical_floor is None else f"{best.lexical_floor:.1f}",
            "n": f"{best.n:,}",
            "trained on": f"{first.train.used:,} of {first.train.available:,}",
        }
        body.append(row)
    return tabulate(body, headers="keys", tablefmt="simple", disable_numparse=True)


def layers_of(folder: Path, say: Say) -> tuple[Layer, ...]:
    """The change by each layer of a run, for each choice of tokens; measured if necessary.

    Raises:
        ConfigError: the run is not finished.
        MissingDataError: its text or checkpoint was removed.
    """
    file = folder / results.LAYERS
    if not file.exists():
        say(f"measuring the layers of {folder.name}")
        write_atomically(file, TypeAdapter(tuple[Layer, ...]).dump_json(_measure_layers(folder, say)) + b"\n")
    return files.read_json(file, tuple[Layer, ...], "remove it, and layers are measured again")


def _measure_layers(folder: Path, say: Say) -> tuple[Layer, ...]:
    """The change by each layer over the run's held-out set for masked language modelling, without its masks."""
    run = runs.read(folder)
    if states.state(folder) not in states.PRETRAINED:
        raise ConfigError(f"{folder.name} is not finished ({states.state(folder)}): only finished runs are measured")

    from albert_lab.data.prepare import prepare
    from albert_lab.data.shards import open_shards
    from albert_lab.data.vocabulary import load_tokenizer
    from albert_lab.measures import catalog
    from albert_lab.model.encoder import PretrainingModel
    from albert_lab.training.checkpoint import last_weights, load_weights
    from albert_lab.training.device import choose_device
    from albert_lab.training.evaluate import make_sets
    from albert_lab.training.layers import hidden_states_of, measure_layers

    own_code.check(run.own_code, run.name)
    config = runs.config_here(run)
    shards, tokenizer = prepare(config, say), load_tokenizer(config)
    train, dev = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))
    device = choose_device(config.machine.device)
    model = PretrainingModel.from_config(config)
    load_weights(last_weights(folder / "checkpoint", run.name), model)
    held_out = make_sets(train, dev, tokenizer, config).batch(catalog.MLM)
    batches = hidden_states_of(model.to(device), held_out, config.evaluation.batch_size, device)
    return measure_layers(batches, config.corpus.name)
