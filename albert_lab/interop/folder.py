"""Models from folders in the Hugging Face layout: files are checked, and no code in them is executed."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError

from albert_lab.cost.capacity import check_weights
from albert_lab.cost.counts import count_encoder
from albert_lab.errors import ConfigError
from albert_lab.interop.architecture import Architecture, read
from albert_lab.interop.tokenizer_files import read_json
from albert_lab.model.heads import PretrainingModel
from albert_lab.model.huggingface import PROJECTION, from_albert, from_bert
from albert_lab.model.shape import EncoderShape

CONFIG_FILE = "config.json"
SAFETENSORS, SAFETENSORS_INDEX, PICKLE = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
# Parts that published checkpoints often lack.
PARTS = ("pooler", "mlm_head", "pair_head")
# Names of LayerNorm's parameters in older conversions from TensorFlow.
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# Second name of a tied tensor: its first name.
_TIED = {
    "albert": {
        "predictions.decoder.bias": "predictions.bias",
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    },
    "bert": {
        "cls.predictions.decoder.bias": "cls.predictions.bias",
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    },
}


@dataclass(frozen=True)
class FolderModel:
    """A model read from a folder, in evaluation mode.

    missing has the names in PARTS that the folder lacks: pooler and mlm_head get random weights, a
    pair head is left out. unused has the names of unused tensors. notes describe changes in words.
    """

    architecture: Architecture
    model: PretrainingModel
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    notes: tuple[str, ...]


def read_architecture(folder: Path) -> Architecture:
    """The architecture in the config.json of a folder.

    Raises:
        ConfigError: see architecture.read.
    """
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise ConfigError(f"{folder} has no {CONFIG_FILE}: it is not a folder in the Hugging Face layout")
    return read(file)


def read_model(folder: Path) -> FolderModel:
    """The model of a folder.

    Raises:
        ConfigError: a missing or damaged file, or one for another encoder; a tensor that is missing or contradicts the
            shapes of config.json; a pickle with anything but tensors.
    """
    described = read_architecture(folder)
    check_weights(count_encoder(described.shape), f"{folder / CONFIG_FILE} describes a model that")
    file, raw = read_tensors(folder)
    notes = []
    if renamed := [name for name in raw if name.endswith(tuple(_OLD_NAMES))]:
        raw = {_new_name(name): tensor for name, tensor in raw.items()}
        notes.append(f"{len(renamed)} LayerNorm parameters have their old names (gamma, beta)")
    raw = _with_first_names(raw, described.family, file)
    types = {str(tensor.dtype).removeprefix("torch.") for tensor in raw.values() if tensor.is_floating_point()}
    if types - {"float32"}:
        notes.append(f"weights are stored as {', '.join(sorted(types))} and computed as float32 here")
    raw = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in raw.items()}
    shape = _with_projection(described.shape, raw)
    rename = from_albert if described.family == "albert" else from_bert
    state, unused = rename(raw, shape)
    unused = [name for name in unused if name not in _TIED[described.family]]
    if any(name.endswith("position_ids") for name in unused):
        notes.append("position_ids are stored with the weights; they are 0, 1, 2, ... and not read")
        unused = [name for name in unused if not name.endswith("position_ids")]
    if unused:
        notes.append(f"tensors without a place here are not read: {', '.join(sorted(unused))}")
    parts = {name.split(".")[0] for name in state}
    missing = tuple(part for part in PARTS if part not in parts)
    labels = described.pair_labels if "pair_head" in parts else ()
    model = PretrainingModel(shape, len(labels), seed=0).eval()
    _fill(model, state, missing, file)
    architecture = Architecture(described.family, shape, labels)
    return FolderModel(architecture, model, missing, tuple(sorted(unused)), tuple(notes))


def read_tensors(folder: Path) -> tuple[Path, dict[str, torch.Tensor]]:
    """The file of a folder's weights, and its tensors by the names in the file.

    Raises:
        ConfigError: no file, a damaged file, or a pickle with anything but tensors, which is not executed.
    """
    if (folder / SAFETENSORS).is_file():
        return folder / SAFETENSORS, _read_safetensors(folder / SAFETENSORS)
    if (folder / SAFETENSORS_INDEX).is_file():
        index = folder / SAFETENSORS_INDEX
        places = read_json(index).get("weight_map")
        if not isinstance(places, dict) or not all(_is_name(name) for name in places.values()):
            raise ConfigError(f"{index}: weight_map must give for each tensor the name of a file in the same folder")
        tensors: dict[str, torch.Tensor] = {}
        for name in sorted(set(places.values())):
            tensors |= _read_safetensors(folder / name)
        return index, tensors
    if (folder / PICKLE).is_file():
        return folder / PICKLE, _read_pickle(folder / PICKLE)
    raise ConfigError(f"{folder} has no weights: neither {SAFETENSORS}, {SAFETENSORS_INDEX} nor {PICKLE}")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and Path(name).name == name and name.endswith(".safetensors")


def _read_safetensors(file: Path) -> dict[str, torch.Tensor]:
    try:
        return safetensors.torch.load_file(file)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{file} is damaged: {error}") from error


def _read_pickle(file: Path) -> dict[str, torch.Tensor]:
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ConfigError(f"{file} contains more than tensors, or is damaged; nothing in it was executed") from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise ConfigError(f"{file} is damaged: {error}") from error
    if not isinstance(content, Mapping) or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise ConfigError(f"{file} is not a state dict (tensors by name)")
    return {str(name): tensor for name, tensor in content.items()}


def _new_name(name: str) -> str:
    for old, new in _OLD_NAMES.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def _with_first_names(raw: dict[str, torch.Tensor], family: str, file: Path) -> dict[str, torch.Tensor]:
    """The tensors, with each tied tensor also under its first name; transformers saves only one of the names."""
    renamed = dict(raw)
    for second, first in _TIED[family].items():
        if second not in raw:
            continue
        if first not in raw:
            renamed[first] = raw[second]
        elif not torch.equal(raw[first], raw[second]):
            raise ConfigError(f"{file}: {second} differs from {first}, but they must be tied")
    return renamed


def _with_projection(shape: EncoderShape, raw: Mapping[str, torch.Tensor]) -> EncoderShape:
    """The shape without a projection if E = H and the projection is the identity, as in exports of this package."""
    if not shape.projection or shape.embedding_size != shape.hidden_size:
        return shape
    base = "" if any(name.startswith("albert.") for name in raw) else "albert."
    weight = raw.get(f"{PROJECTION}.weight".removeprefix(base))
    bias = raw.get(f"{PROJECTION}.bias".removeprefix(base))
    if weight is None or bias is None:
        return shape
    is_identity = torch.equal(weight, torch.eye(shape.hidden_size)) and not bias.any()
    return replace(shape, projection=False) if is_identity else shape


def _fill(model: PretrainingModel, state: Mapping[str, torch.Tensor], missing: tuple[str, ...], file: Path) -> None:
    expected = model.state_dict()
    for name, tensor in expected.items():
        if name.split(".")[0] in missing:
            continue
        if name not in state:
            raise ConfigError(f"{file} lacks a tensor: {name} (as it is called here)")
        if state[name].shape != tensor.shape:
            raise ConfigError(
                f"{file} does not fit its {CONFIG_FILE}: {name} (as it is called here) is {list(state[name].shape)}"
                f" there, {list(tensor.shape)} by {CONFIG_FILE}"
            )
        if not state[name].is_floating_point() or not state[name].isfinite().all():
            raise ConfigError(f"{file}: {name} (as it is called here) has values that are no finite real numbers")
    for name in state:
        if name not in expected:
            raise ConfigError(f"{file} does not fit its {CONFIG_FILE}: {name} is not in the model")
    model.load_state_dict(dict(state), strict=False)
