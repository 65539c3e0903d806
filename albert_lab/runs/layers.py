"""The change by each layer of a finished run, measured on request."""

from pathlib import Path

from pydantic import TypeAdapter

from albert_lab import files, own_code
from albert_lab.messages import Say
from albert_lab.runs import results, states
from albert_lab.runs import run as runs
from albert_lab.storage import write_atomically
from albert_lab.training.layers import Layer


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
    run = states.read_finished(folder)
    from albert_lab.data.prepare import prepare
    from albert_lab.data.shards import open_shards
    from albert_lab.data.vocabulary import load_tokenizer
    from albert_lab.measures import catalog
    from albert_lab.model.encoder import PretrainingModel
    from albert_lab.training.checkpoint import last_weights, load_weights
    from albert_lab.training.device import choose_device
    from albert_lab.training.evaluate import Evaluator
    from albert_lab.training.layers import hidden_states_of, measure_layers

    own_code.check(run.own_code, run.name)
    config = runs.config_here(run)
    shards, tokenizer = prepare(config, say), load_tokenizer(config)
    train, dev = (open_shards(shards, split, tokenizer) for split in ("train", "dev"))
    device = choose_device(config.machine.device)
    model = PretrainingModel.from_config(config)
    load_weights(last_weights(folder / "checkpoint", run.name), model)
    held_out = Evaluator(config, train, dev, tokenizer, {}, device).batch(catalog.MLM)
    batches = hidden_states_of(model.to(device).eval(), held_out, config.evaluation.batch_size, device)
    return measure_layers(batches, config.corpus.name)
