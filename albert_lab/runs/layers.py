"""The change by each layer of a finished run: measured once on its final checkpoint and stored in its folder."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from albert_lab import files
from albert_lab.errors import ConfigError
from albert_lab.messages import with_progress
from albert_lab.runs import ancestry, results, states
from albert_lab.runs import run as runs
from albert_lab.runs.layer_numbers import Layer
from albert_lab.storage import write_atomically

REMEDY = "remove it, and layers are measured again"

if TYPE_CHECKING:  # it loads torch, which the status of runs does not need
    from albert_lab.training.layer_similarity import LayerChange


def measurable(folder: Path, *, most: int) -> list[Path]:
    """Folders of the runs, newest first, whose layers were or can be measured: finished or imported, with weights."""
    found = [
        run
        for run in folder.glob("*/")
        if states.state(run) in states.PRETRAINED and ((run / results.LAYERS).exists() or ancestry.has_weights(run))
    ]
    return sorted(found, key=lambda run: (run / runs.RUN_FILE).stat().st_mtime, reverse=True)[:most]


def of_run(folder: Path, say: Callable[[str], None]) -> tuple[Layer, ...]:
    """The change by each layer of a run, for each choice of tokens; measured if necessary.

    Raises:
        ConfigError: the run is not finished.
        MissingDataError: its text or checkpoint was removed.
    """
    file = folder / results.LAYERS
    if not file.exists():
        import pandas as pd

        say(f"measuring the layers of {folder.name}")
        write_atomically(file, files.csv_text(pd.DataFrame(asdict(change) for change in _measure(folder, say))))
    rows = files.read_csv(file, text=("token",), remedy=REMEDY)
    corpus = runs.read(folder).config.corpus.name
    return files.check(file, [{"corpus": corpus} | line for line in rows.to_dict("records")], tuple[Layer, ...], REMEDY)


def _measure(folder: Path, say: Callable[[str], None]) -> "list[LayerChange]":
    """The change by each layer over the run's held-out set for masked language modelling, without its masks."""
    run = runs.read(folder)
    if states.state(folder) not in states.PRETRAINED:
        raise ConfigError(f"{folder.name} is not finished ({states.state(folder)}): only finished runs are measured")

    from albert_lab.data.prepare import prepare
    from albert_lab.data.shards import open_shards
    from albert_lab.data.tokenizer.cache import load_tokenizer
    from albert_lab.measures import mlm
    from albert_lab.model.heads import PretrainingModel
    from albert_lab.training.checkpoint import last_weights, load_weights
    from albert_lab.training.device import choose_device
    from albert_lab.training.evaluation_sets import make_sets
    from albert_lab.training.layer_similarity import hidden_states_of, measure

    config = runs.config_here(run)
    shards = prepare(config, say)
    tokenizer = load_tokenizer(config)
    train, dev = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))
    device = choose_device(config.machine.device)
    model = PretrainingModel.from_config(config)
    checkpoints = folder / "checkpoint"
    load_weights(last_weights(checkpoints), model)
    held_out = make_sets(train, dev, tokenizer, config).batch(mlm.MEASURE)
    batches = hidden_states_of(model.to(device), held_out, config.evaluation.batch_size, device)
    number = -(-len(held_out) // config.evaluation.batch_size)
    return measure(with_progress(batches, number, f"layers of {folder.name}: {{}} of {{}} batches", say))
