"""The change by each layer of a finished run, measured on request."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from albert_lab import files
from albert_lab.messages import Say
from albert_lab.runs import preparing, results, states
from albert_lab.runs import run as runs
from albert_lab.storage import write_atomically
from albert_lab.training.layers import Layer


def layers_of(folder: Path, say: Say) -> tuple[Layer, ...]:
    """The change by each layer of a run over its held-out set for masked language modelling,
    without its masks; measured if necessary.

    Raises:
        ConfigError: the run is not finished.
        MissingDataError: its text or checkpoint was removed.
    """
    file = folder / results.LAYERS
    if not file.exists():
        from albert_lab.measures import catalog
        from albert_lab.model.encoder import PretrainingModel
        from albert_lab.training.checkpoint import last_weights, load_weights
        from albert_lab.training.device import choose_device
        from albert_lab.training.evaluate import Evaluator
        from albert_lab.training.layers import hidden_states_of, measure_layers

        run = states.read_finished(folder)
        say(f"measuring the layers of {run.name}")
        config = runs.config_here(run)
        runs.check_text(run)
        data, device = preparing.load(config, say), choose_device(config.machine.device)
        model = PretrainingModel.from_config(config)
        load_weights(last_weights(folder / "checkpoint", run.name), model)
        held_out = Evaluator(config, data.fitted_on, data.dev, data.tokenizer, {}, device).batch(
            catalog.MLM
        )
        batches = hidden_states_of(
            model.to(device).eval(), held_out, config.evaluation.batch_size, device
        )
        measured = measure_layers(batches, config.corpus.name)
        write_atomically(file, TypeAdapter(tuple[Layer, ...]).dump_json(measured) + b"\n")
    form: Any = Annotated[tuple[Layer, ...], Field(min_length=1)]
    return files.read_json(file, form, "remove it, and layers are measured again")
