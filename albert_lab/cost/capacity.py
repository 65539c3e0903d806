"""Checks that the machine has the memory that a configuration needs, before anything is built."""

from collections.abc import Callable, Sequence
from operator import attrgetter

from albert_lab.config.schema import RunConfig
from albert_lab.cost.counts import FLOAT32_BYTES, count_parameters, estimate_training_memory, largest_batch
from albert_lab.data.batches import even_size
from albert_lab.errors import ConfigError
from albert_lab.machine import has_gpu, memory_bytes
from albert_lab.units import size

# Bytes per token of a batch before it is on the device: ids, mask, segments and labels from the loader.
_LOADED_BYTES_PER_TOKEN = 26
# What a user can lower, and the share by which half of it has to lower the memory to be named.
_KEYS = (
    "model.hidden_size",
    "model.num_layers",
    "model.intermediate_size",
    "embedding_size",
    "tokenizer.vocab_size",
    "batch_size",
    "machine.micro_batch_size",
    "max_sequence_length",
    "evaluation.num_pairs",
    "evaluation.num_probe_pairs",
)
_WORTH = 0.1


def check_training(config: RunConfig) -> None:
    """Check that main memory is enough for training; with a GPU only for the weights and a batch.

    Raises:
        ConfigError: memory is too small; names both numbers, unless machine.memory_check=false.
    """
    if config.machine.memory_check:
        model, data = _training(config)
        what = f"training ({size(model)} for the model, {size(data)} for its data)"
        check(model + data, what, lambda: _keys_that_help(config))


def _training(config: RunConfig) -> tuple[int, int]:
    machine = config.machine
    if machine.device == "cpu" or (machine.device == "auto" and not has_gpu()):
        model = estimate_training_memory(_with(config, "machine.device", "cpu")).total * machine.processes
    else:
        model = FLOAT32_BYTES * count_parameters(config).total
    sequences = max(config.batch_size, config.evaluation.num_pairs, config.evaluation.num_probe_pairs)
    return model, sequences * config.max_sequence_length * _LOADED_BYTES_PER_TOKEN


def _keys_that_help(config: RunConfig) -> list[str]:
    """The keys of which half the value lowers the memory enough to matter."""
    most = (1 - _WORTH) * sum(_training(config))
    values = {key: attrgetter(key)(config) for key in _KEYS}
    if values["machine.micro_batch_size"] is None:
        values["machine.micro_batch_size"] = config.batch_size // config.machine.processes
    halves = {key: value // 2 for key, value in values.items() if isinstance(value, int) and value > 1}
    return [key for key, half in halves.items() if sum(_training(_with(config, key, half))) < most]


def _with(config: RunConfig, key: str, value: object) -> RunConfig:
    section, _, name = key.rpartition(".")
    if not section:
        return config.model_copy(update={name: value})
    return config.model_copy(update={section: getattr(config, section).model_copy(update={name: value})})


def micro_batch_size(config: RunConfig, device: str, precision: str, processes: int, usable_bytes: int) -> int:
    """The largest micro-batch that divides the batch of a process and fits in memory by the estimate."""
    update = {"device": device, "precision": precision, "processes": processes}
    there = config.model_copy(update={"machine": config.machine.model_copy(update=update)})
    return even_size(config.batch_size // processes, largest_batch(there, usable_bytes))


def check_weights(parameters: int, what: str) -> None:
    """Check that main memory is enough for the weights of a model.

    Raises:
        ConfigError: memory is too small; names both numbers.
    """
    check(FLOAT32_BYTES * parameters, what)


def check(needed: int, what: str, keys: Callable[[], Sequence[str]] | None = None) -> None:
    """Raise ConfigError if more bytes are needed than available, with both numbers and the keys to lower."""
    there = memory_bytes()
    if needed > there:
        remedy = f": lower {' or '.join(keys())}; or give machine.memory_check=false" if keys else ""
        raise ConfigError(f"{what} needs about {size(needed)}, and this machine has {size(there)}{remedy}")
