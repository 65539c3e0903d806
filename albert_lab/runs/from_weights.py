"""What is computed from the weights of a finished run: scores that its record lacks, or that
another run of the same training asks for, and the change by each layer.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter

from albert_lab import files, own_code
from albert_lab.messages import Say
from albert_lab.runs import preparing, results, states
from albert_lab.runs import run as runs
from albert_lab.runs.run import Run
from albert_lab.storage import remove, write_atomically
from albert_lab.training.layers import Layer

if TYPE_CHECKING:  # they load torch, and the thread count must be set before that
    from albert_lab.model.encoder import PretrainingModel
    from albert_lab.training.evaluate import Evaluator


def score_again(run: Run, folder: Path, say: Say, is_stopped: Callable[[], bool]) -> bool:
    """Score a run for which nothing is to be trained, if its record lacks measures that are
    included, or if another run has the weights that it would get; False if stopped, with its record
    as it was.

    The cost of the training, and its machine, stay in the record. The caller holds the lock of the
    run.

    Raises:
        ConfigError: its text has changed. MissingDataError: its text or checkpoint was removed.
    """
    other = None if runs.is_trained(folder) else runs.same_training(run)
    if other is None and not results.lacks_scores(folder):
        return True
    from albert_lab.training import checkpoint
    from albert_lab.training.evaluate import StoppedError

    source = other or run
    say(f"is scored from the weights of {source.name}; nothing is trained")
    record = results.read(other.folder if other else folder, source.name)
    assert record is not None
    if other:
        own_checkpoints = folder / "checkpoint"
        remove(own_checkpoints)  # of a training or a copy that was stopped
        checkpoint.copy_last(other.folder / "checkpoint", other.name, own_checkpoints, run.name)
        shutil.copyfile(other.folder / results.METRICS, folder / results.METRICS)
    model, evaluator = _opened(run, folder, say, is_stopped)
    try:
        evaluation = evaluator.evaluate(model, record.untrained)
    except StoppedError:
        return False
    scored = {
        "name": run.name,
        "config": run.config,
        "start_from": run.start_from,
        "evaluation_set": run.evaluation_set,
        "scores": evaluation.scores,
        "documents": evaluation.documents,
        "scored_with": own_code.of_measures(),
    }
    results.write(folder, record.model_copy(update=scored))
    return True


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
        from albert_lab.training.layers import hidden_states_of, measure_layers

        run = states.read_finished(folder)
        say(f"measuring the layers of {run.name}")
        model, evaluator = _opened(run, folder, say)
        config = evaluator.config
        batches = hidden_states_of(
            model.eval(),
            evaluator.batch(catalog.MLM),
            config.evaluation.batch_size,
            evaluator.device,
        )
        measured = measure_layers(batches, config.corpus.name)
        write_atomically(file, TypeAdapter(tuple[Layer, ...]).dump_json(measured) + b"\n")
    form: Any = Annotated[tuple[Layer, ...], Field(min_length=1)]
    return files.read_json(file, form, "remove it, and layers are measured again")


def _opened(
    run: Run, folder: Path, say: Say, is_stopped: Callable[[], bool] = lambda: False
) -> "tuple[PretrainingModel, Evaluator]":
    """The model of a finished run, and what scores it, both on the device of this machine."""
    from albert_lab.model.encoder import PretrainingModel
    from albert_lab.training.checkpoint import last_weights, load_weights
    from albert_lab.training.device import choose_device
    from albert_lab.training.evaluate import Evaluator

    config = runs.config_here(run)
    runs.check_text(run)
    weights = last_weights(folder / "checkpoint", run.name)
    data = preparing.load(config, say)
    device = choose_device(config.machine.device)
    model = PretrainingModel.from_config(config)
    load_weights(weights, model)
    evaluator = Evaluator(
        config, data.fitted_on, data.dev, data.tokenizer, data.floors, device, is_stopped
    )
    return model.to(device), evaluator
