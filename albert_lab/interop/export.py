"""Export of a run folder to a folder in the Hugging Face layout, or to a self-contained folder in our own layout."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import safetensors.torch
import torch

from albert_lab.data.tokenizer.cache import MODEL_FILE
from albert_lab.errors import ConfigError
from albert_lab.interop import architecture as architectures
from albert_lab.interop import folder as folders
from albert_lab.interop import tokenizer_files
from albert_lab.interop.architecture import Architecture, Family
from albert_lab.interop.card import UNKNOWN, model_card
from albert_lab.interop.loading import Opened, open_run
from albert_lab.model.huggingface import to_albert, to_bert
from albert_lab.model.shape import EncoderShape
from albert_lab.runs import results, states
from albert_lab.runs import run as runs
from albert_lab.storage import check_folder, replacing

AUTO, OWN = "auto", "albert-lab"
LAYOUTS = (AUTO, *get_args(Family), OWN)
CARD = "README.md"


def export(text: str, target: Path, layout: str, licence: str = UNKNOWN) -> str:
    """Writes a finished or imported run atomically as a separate folder; returns the layout.

    auto: as ALBERT if whole layers are shared, as BERT if none are shared and E = H.

    Args:
        target: folder to write; it must be empty or not exist.

    Raises:
        ConfigError: unknown layout or run, an unfinished run, a target that is not empty or cannot be written, or a
            model that the layout does not support.
        MissingDataError: the run's weights or tokenizer do not exist.
    """
    if layout not in LAYOUTS:
        raise ConfigError(f"--layout {layout} is unknown (allowed: {', '.join(LAYOUTS)})")
    folder = runs.find(text)
    states.check_finished(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} already exists and is not empty")
    check_folder(target.parent, f"DIR {target}:")
    opened = open_run(folder)
    shape = opened.model.encoder.shape
    if layout == AUTO:
        layout = choose_layout(shape)
    write = _own(folder, opened) if layout == OWN else _transformers(opened, shape, layout)
    with replacing(target) as partial:
        partial.mkdir()
        write(partial)
        card = model_card(folder, opened, layout, _model_class(partial), licence)
        (partial / CARD).write_text(card, encoding="utf-8")
    return layout


def choose_layout(shape: EncoderShape) -> Family:
    """The kind of model of transformers to which a shape belongs by common usage.

    Raises:
        ConfigError: it belongs to neither; the message suggests alternatives.
    """
    own = list(range(shape.num_layers))
    if shape.num_layers == 1 or (shape.attention_blocks != own and shape.ffn_blocks != own):
        return "albert"
    if shape.attention_blocks != shape.ffn_blocks:
        raise ConfigError(
            "sharing: attention and FFN blocks are shared differently, but ALBERT in transformers shares only whole"
            f" layers; --layout {OWN} writes a folder that albert_lab.load opens"
        )
    if shape.projection or shape.embedding_size != shape.hidden_size:
        raise ConfigError(
            f"no layer is shared, and embedding_size={shape.embedding_size} is projected to"
            f" model.hidden_size={shape.hidden_size}: BERT has no projection, and published ALBERT shares its layers;"
            " --layout albert writes an ALBERT with a group for each layer, which computes the same;"
            f" --layout {OWN} a folder that albert_lab.load opens"
        )
    return "bert"


def _transformers(opened: Opened, shape: EncoderShape, layout: str) -> Callable[[Path], None]:
    family: Family = "albert" if layout == "albert" else "bert"
    state = {
        name: tensor for name, tensor in opened.model.state_dict().items() if name.split(".")[0] not in opened.missing
    }
    try:
        tensors = (to_albert if family == "albert" else to_bert)(state, shape)
    except ConfigError as error:
        raise ConfigError(f"{error}; --layout {OWN} writes a folder that albert_lab.load opens") from error
    tokenizer = opened.tokenizer
    special_ids = {"pad": tokenizer.pad_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    content = architectures.write(Architecture(family, shape, opened.pair_labels), special_ids)
    if "mlm_head" in opened.missing:
        content["architectures"] = ["AlbertModel" if family == "albert" else "BertModel"]

    def write(folder: Path) -> None:
        (folder / folders.CONFIG_FILE).write_text(json.dumps(content, indent=2) + "\n")
        _save(tensors, folder)
        tokenizer_files.write(opened.tokenizer_file, opened.config, folder)

    return write


def _model_class(folder: Path) -> str | None:
    config = folder / folders.CONFIG_FILE
    return json.loads(config.read_text())["architectures"][0] if config.exists() else None


def _own(folder: Path, opened: Opened) -> Callable[[Path], None]:
    def write(target: Path) -> None:
        for name in (runs.RUN_FILE, results.RECORD, runs.IMPORT):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, target / name)
        _save(opened.model.state_dict(), target)
        is_json = opened.tokenizer_file.suffix == ".json"
        shutil.copyfile(opened.tokenizer_file, target / (tokenizer_files.JSON_FILE if is_json else MODEL_FILE))

    return write


def _save(tensors: dict[str, torch.Tensor], folder: Path) -> None:
    # transformers requires this metadata.
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    safetensors.torch.save_file(contiguous, folder / folders.SAFETENSORS, metadata={"format": "pt"})
