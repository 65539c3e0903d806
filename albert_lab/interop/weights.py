"""The tensors of a model's folder: one file or shards; and, of a folder without, what it is and
what helps.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import safetensors.torch
import torch

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import Name, Record, read_json

Tensors = dict[str, torch.Tensor]
WEIGHTS = "model.safetensors"
PICKLED = "pytorch_model.bin"
# What trainers put before the names of tensors.
_PREFIXES = re.compile(r"^(?:module\.|_orig_mod\.)+")
_CONVERTER = "transformers.models.bert.convert_bert_original_tf_checkpoint_to_pytorch"


class _Index(Record, extra="ignore"):
    """The key of an index of shards that is read: the file of each tensor."""

    weight_map: dict[str, Name]


def read(folder: Path) -> Tensors:
    """The floating-point tensors of the one model in a folder, safetensors before other files, by
    name and without the prefixes of a trainer.

    Raises:
        MissingDataError: there is no such folder.
        ConfigError: no weights in it, a damaged file, or what is no dense tensor of finite numbers;
            no code of a file is executed.
    """
    tensors: Tensors = {}
    for file in _files(folder):
        tensors |= _tensors(file)
    return tensors


def _files(folder: Path) -> list[Path]:
    """The files that have the weights together: one, or those of an index."""
    if not folder.is_dir():
        raise MissingDataError(
            f"there is no folder {folder}: nothing is downloaded, so put the model there first, "
            "with config.json and tokenizer"
        )
    for name in (WEIGHTS, PICKLED):
        index = folder / f"{name}.index.json"
        if (folder / name).is_file():
            return [folder / name]
        if index.is_file():
            shards = sorted({*read_json(index, _Index).weight_map.values()})
            return [folder / shard for shard in shards]
    raise ConfigError(f"{folder} has neither {WEIGHTS} nor {PICKLED}{_instead(folder)}")


def _instead(folder: Path) -> str:
    """What a folder without weights is, as far as its files tell, and what to do."""
    adapter = folder / "adapter_config.json"
    if adapter.is_file():
        base = read_json(adapter, dict[str, object]).get("base_model_name_or_path")
        return (
            f": it is an adapter of {base}; peft loads both, and "
            "model.merge_and_unload().save_pretrained(DIR) writes a model that can be imported"
        )
    # Checkpoints of a trainer, the folder of a sentence-transformer, snapshots of a hub's cache.
    below = [*folder.glob("*/*"), *folder.glob("*/*/*")]
    weights = [file for file in below if file.name.startswith((WEIGHTS, PICKLED))]
    inside = sorted({str(file.parent) for file in weights})
    if inside:
        return f": the weights are below it, so import one of {', '.join(inside[:5])}"
    if any(folder.glob("*.ckpt*.index")):
        script = f"python -m {_CONVERTER} (ALBERT: albert for bert) of transformers 4"
        return f"; of a checkpoint of TensorFlow, {script} makes one"
    return ": model.save_pretrained(DIR) writes what can be imported"


def _tensors(file: Path) -> Tensors:
    content: Mapping[str, object]
    try:
        if file.suffix == ".safetensors":
            content = safetensors.torch.load_file(file)
        else:
            content = torch.load(file, "cpu", weights_only=True)
        named = {_PREFIXES.sub("", name): tensor for name, tensor in content.items()}
    except Exception as error:  # of any class, as the damage of the file has it
        raise ConfigError(
            f"{file} is missing, damaged, or no dict of tensors by name: copy all files of the "
            "model, or save model.state_dict()"
        ) from error
    if len(named) < len(content):
        raise ConfigError(
            f"{file} has a tensor twice, with and without a prefix: save model.state_dict() alone"
        )
    for name, tensor in named.items():
        if (
            not isinstance(tensor, torch.Tensor)
            or tensor.layout is not torch.strided
            or tensor.is_meta
            or not tensor.isfinite().all()
        ):
            raise ConfigError(
                f"{file}: {name} is no dense tensor of finite numbers: save model.state_dict() "
                "with its values"
            )
    dense = cast(Tensors, named)
    # The others are position_ids, which older versions of transformers saved.
    return {name: tensor for name, tensor in dense.items() if tensor.is_floating_point()}
