"""Checks that the machine has the memory that a configuration needs, before anything is built."""

from albert_lab.config.schema import RunConfig
from albert_lab.cost.parameters import FLOAT32_BYTES, count_parameters, estimate_training_memory, largest_batch
from albert_lab.data.batches import even_size
from albert_lab.errors import ConfigError
from albert_lab.machine import has_gpu, memory_bytes

# Bytes per token of a batch before it is on the device: ids, mask, segments and labels from the loader.
_LOADED_BYTES_PER_TOKEN = 26
_LARGEST = ("model.hidden_size", "model.num_layers", "batch_size", "machine.micro_batch_size", "max_sequence_length")


def check_training(config: RunConfig) -> None:
    """Check that main memory is enough for training; with a GPU only for the weights and a batch.

    Raises:
        ConfigError: memory is too small; names both numbers, unless machine.memory_check=false.
    """
    machine = config.machine
    is_cpu = machine.device == "cpu" or (machine.device == "auto" and not has_gpu())
    if is_cpu:
        on_cpu = config.model_copy(update={"machine": machine.model_copy(update={"device": "cpu"})})
        model = estimate_training_memory(on_cpu).total * machine.processes
    else:
        model = FLOAT32_BYTES * count_parameters(config).total
    sequences = max(config.batch_size, config.evaluation.num_pairs, config.evaluation.num_probe_pairs)
    data = sequences * config.max_sequence_length * _LOADED_BYTES_PER_TOKEN
    if machine.memory_check:
        check(model + data, f"training ({_bytes(model)} for the model, {_bytes(data)} for its data)", _LARGEST)


def micro_batch_size(config: RunConfig, device: str, precision: str, processes: int, usable_bytes: int) -> int:
    """The largest micro-batch that divides the batch of a process and fits in memory by the estimate.

    Args:
        config: of a run.
        device: the kind of device, cpu or cuda.
        precision: bf16 or fp32.
        processes: the number of processes.
        usable_bytes: the memory that each of them can use.
    """
    update = {"device": device, "precision": precision, "processes": processes}
    there = config.model_copy(update={"machine": config.machine.model_copy(update=update)})
    return even_size(config.batch_size // processes, largest_batch(there, usable_bytes))


def check_weights(parameters: int, what: str) -> None:
    """Check that main memory is enough for the weights of a model.

    Raises:
        ConfigError: memory is too small; names both numbers.
    """
    check(FLOAT32_BYTES * parameters, what)


def check(needed: int, what: str, keys: tuple[str, ...] = ()) -> None:
    """Raise ConfigError if more bytes are needed than available, with both numbers and the keys to lower."""
    there = memory_bytes()
    if needed > there:
        remedy = f": lower {', '.join(keys)}; or give machine.memory_check=false" if keys else ""
        raise ConfigError(f"{what} needs about {_bytes(needed)}, and this machine has {_bytes(there)}{remedy}")


def _bytes(number: int) -> str:
    return f"{number / 2**30:,.1f} GiB"
