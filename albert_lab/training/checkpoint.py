"""Checkpoints of a training run: written atomically, and checked before they are loaded.

A checkpoint is a folder `step-00000500` with the weights, the optimizer's state, the position in
the run, and the digests of these files, which `b2sum -c B2SUMS` can check, too.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.optim import Optimizer

from albert_lab.errors import ConfigError, DamagedFileError, MissingDataError
from albert_lab.files import read_bytes
from albert_lab.storage import PARTIAL, link, remove, replacing

MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
DIGESTS = "B2SUMS"  # of the three others
KEPT = 2  # checkpoints of a run: if the last one is damaged, the one before it is used
NamedTensors = dict[str, Tensor]
REMEDY = "remove the folder of the run, and make it again"


def save(folder: Path, model: nn.Module, optimizer: Optimizer, state: Mapping[str, Any]) -> Path:
    """Write a checkpoint below `folder` and return its path; the folder keeps it and the previous
    one.

    Only one process may write there.

    Args:
        state: position in the run, as JSON values, with at least `run_name` and `step`. The
            optimizer's hyperparameters are not part of a checkpoint: they follow from the
            configuration and the position.

    Raises:
        OSError: the disk is full or fails; earlier checkpoints are unchanged.
    """
    final = folder / f"step-{state['step']:08d}"
    for partial in folder.glob(f"*{PARTIAL}*"):  # of a killed process
        remove(partial)
    with replacing(final) as partial:
        partial.mkdir()
        _write_tensors(partial / MODEL, weights_of(model))
        _write_tensors(partial / OPTIMIZER, _moments(model, optimizer))
        _write_state(partial, state)
    for old in _checkpoints(folder)[:-KEPT]:
        remove(old)
    return final


def load_latest(
    folder: Path, model: nn.Module, optimizer: Optimizer, run_name: str, say: Callable[[str], None]
) -> dict[str, Any] | None:
    """Load the newest undamaged checkpoint into model and optimizer, and return its state; None if
    there is none.

    A damaged checkpoint is reported through `say` and renamed with the suffix `.damaged`; the
    previous one is used.

    Raises:
        ConfigError: the checkpoint belongs to another run, or its tensors do not fit the model.
    """
    for path in reversed(_checkpoints(folder)):
        if (damage := _damage(path)) is None:
            return load(path, model, optimizer, run_name)
        aside = path.with_suffix(".damaged")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        say(f"checkpoint {path} is damaged and is not used: {damage}; set aside as {aside.name}")
    return None


def copy_last(folder: Path, run_name: str, to: Path, new_name: str) -> None:
    """Give the last checkpoint of a finished run to another run of the same training, too; raises
    what last_weights() raises.
    """
    last = last_weights(folder, run_name).parent
    with replacing(to / last.name) as partial:
        partial.mkdir()
        for name in (MODEL, OPTIMIZER):
            link(last / name, partial / name)
        _write_state(partial, _read_state(last, run_name) | {"run_name": new_name})


def last_weights(folder: Path, run_name: str) -> Path:
    """The weights of the last checkpoint of a finished run; its other files stand beside them.

    Raises:
        MissingDataError: there is no checkpoint.
        DamagedFileError: the last one is damaged.
        ConfigError: it belongs to another run.
    """
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        raise MissingDataError(f"{folder} has no checkpoint: the run's weights are gone; {REMEDY}")
    # the previous checkpoint is of an earlier step, and would be another start
    if damage := _damage(checkpoints[-1]):
        raise DamagedFileError(checkpoints[-1], f"the checkpoint is damaged: {damage}", REMEDY)
    _read_state(checkpoints[-1], run_name)
    return checkpoints[-1] / MODEL


def set_weights(model: nn.Module, tensors: NamedTensors, origin: str) -> None:
    """Load weights from memory into a model; origin names them in errors.

    Raises:
        ConfigError: names, shapes or types of the tensors are not those of the model.
    """
    own = weights_of(model)
    # All are compared before the first is copied: a model that is refused stays as it is.
    for name in sorted(own.keys() | tensors.keys()):
        in_model = _form(own.get(name))
        in_file = _form(tensors.get(name))
        if in_model != in_file:
            raise ConfigError(
                f"{origin} does not fit the model: {name} is {in_file} there, {in_model} in the "
                "model"
            )
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


def _form(tensor: Tensor | None) -> str:
    """The type and shape of a tensor, or that there is none."""
    return "missing" if tensor is None else f"{tensor.dtype} {list(tensor.shape)}"


def save_weights(path: Path, model: nn.Module) -> None:
    """Write a model's weights atomically.

    Raises:
        OSError: the disk is full or fails; an earlier file is unchanged.
    """
    with replacing(path) as partial:
        _write_tensors(partial, weights_of(model))


def read_weights(path: Path) -> NamedTensors:
    """The weights of a file by name.

    Raises:
        MissingDataError: the file does not exist.
        DamagedFileError: the file is damaged.
    """
    if not path.is_file():
        raise MissingDataError(f"weights {path}: the file does not exist")
    try:
        return safetensors.torch.load_file(path)
    except (OSError, SafetensorError) as error:
        raise DamagedFileError(path, f"the weights are damaged: {error}") from error


def load_weights(path: Path, model: nn.Module) -> None:
    """Load the weights of a file into a model; errors as in read_weights and set_weights."""
    set_weights(model, read_weights(path), str(path))


def load(path: Path, model: nn.Module, optimizer: Optimizer, run_name: str) -> dict[str, Any]:
    """Load an undamaged checkpoint of a run into model and optimizer, and return its state.

    Raises:
        ConfigError: it belongs to another run, or its tensors do not fit the model.
    """
    state = _read_state(path, run_name)
    load_weights(path / MODEL, model)
    _set_moments(safetensors.torch.load_file(path / OPTIMIZER), model, optimizer)
    return state


def _write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write the state of a checkpoint, and then the digests of its files."""
    (path / STATE).write_text(json.dumps(state, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    lines = [_digest_line(path / name) for name in (MODEL, OPTIMIZER, STATE)]
    (path / DIGESTS).write_bytes(b"".join(lines))


def _read_state(path: Path, run_name: str) -> dict[str, Any]:
    """The state of an undamaged checkpoint; ConfigError if it belongs to another run."""
    state = json.loads((path / STATE).read_text(encoding="utf-8"))
    if state["run_name"] != run_name:
        raise ConfigError(
            f"checkpoint {path} belongs to run {state['run_name']}, not to {run_name}: {REMEDY}"
        )
    return state


def weights_of(model: nn.Module) -> NamedTensors:
    """Parameters and buffers of a model by name, without copies; a tensor with several names is
    listed under its first name.
    """
    named: NamedTensors = {}
    listed: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in listed:
            listed.add(id(tensor))
            named[name] = tensor.detach()
    return named


def _moments(model: nn.Module, optimizer: Optimizer) -> NamedTensors:
    """State of an optimizer as `<parameter>/<entry>`."""
    moments: NamedTensors = {}
    for name, parameter in model.named_parameters():
        # of a parameter that was never trained there is none
        for key, tensor in optimizer.state.get(parameter, {}).items():
            moments[f"{name}/{key}"] = tensor
    return moments


def _set_moments(moments: NamedTensors, model: nn.Module, optimizer: Optimizer) -> None:
    """Set the state of an optimizer to what _moments() returned."""
    parameters = dict(model.named_parameters())
    optimizer.state.clear()
    for flat_name, tensor in moments.items():
        name, _, key = flat_name.rpartition("/")
        # A copy, because the tensors are mapped from the file, and vector instructions, and so the
        # bits of a resumed run, may depend on the addresses.
        optimizer.state[parameters[name]][key] = tensor.clone()
    optimizer.load_state_dict(optimizer.state_dict())  # each to the device of its parameter


def _checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the oldest first."""
    return sorted(folder.glob("step-" + "[0-9]" * 8))


def _damage(path: Path) -> str | None:
    """The damage of a checkpoint; None if every file matches its digest."""
    try:
        recorded = read_bytes(path / DIGESTS).splitlines(keepends=True)
        for name in (MODEL, OPTIMIZER, STATE):
            # A pipe in its place would have no end.
            if not (path / name).is_file() or _digest_line(path / name) not in recorded:
                return f"{name} does not match its digest in {DIGESTS}"
    except (OSError, DamagedFileError) as error:
        return str(error)
    return None


def _digest_line(path: Path) -> bytes:
    """The line of a file in the format of b2sum."""
    with path.open("rb") as file:
        return f"{hashlib.file_digest(file, 'blake2b').hexdigest()}  {path.name}\n".encode()


def _write_tensors(path: Path, tensors: NamedTensors) -> None:
    path.write_bytes(
        safetensors.torch.save({name: tensor.contiguous() for name, tensor in tensors.items()})
    )
