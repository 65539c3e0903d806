"""ALBERT and BERT of transformers, read and written by its own classes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import safetensors.torch
import torch

from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.model.encoder import PretrainingModel
from albert_lab.model.huggingface import PROJECTION, from_albert, from_bert, to_albert, to_bert
from albert_lab.model.shape import EncoderShape

Family = Literal["albert", "bert"]
CONFIG_FILE, WEIGHTS = "config.json", "model.safetensors"
# Names in transformers for the same function.
_ACTIVATIONS = {"gelu_pytorch_tanh": "gelu_new", "gelu_python": "gelu"}
_ACTIVATIONS |= {name: name for name in ("gelu_new", "gelu", "relu")}
# Fields of a shape, and their keys in a config.json.
_KEYS = {key: key for key in ("vocab_size", "hidden_size", "num_attention_heads", "intermediate_size")}
_KEYS |= {key: key for key in ("max_position_embeddings", "layer_norm_eps", "initializer_range")}
_KEYS |= {"num_layers": "num_hidden_layers", "dropout": "hidden_dropout_prob"}
# Keys of a config.json that change what is computed, with the one value that both sides have.
_ONLY = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "type_vocab_size": 2,
    "inner_group_num": 1,
}
# The pair labels of the pre-training head of each family, unless the folder sets others by our key, pair_labels.
_PAIR_LABELS = {"albert": ("consecutive", "swapped"), "bert": ("consecutive", "other-document")}
# Parts that published checkpoints often lack.
PARTS = ("pooler", "mlm_head", "pair_head")


@dataclass(frozen=True)
class FolderModel:
    """A model read from a folder, in evaluation mode.

    missing: names in PARTS that the folder lacks: pooler and mlm_head get random weights, a pair head is left out.
    """

    model: PretrainingModel
    pair_labels: tuple[str, ...]
    missing: tuple[str, ...]


def package(purpose: str) -> Any:
    """The package transformers, without its warnings and progress bars.

    Raises:
        MissingDataError: it is not installed.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingDataError(f"{purpose} needs a package: pip install 'albert-lab[transformers]'") from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def load(loader: Any, folder: Path, **options: Any) -> Any:
    """What a class of transformers loads from a folder; nothing is downloaded, and no code of the folder is executed.

    Raises:
        ConfigError: the folder cannot be loaded.
    """
    try:
        return loader.from_pretrained(folder, local_files_only=True, **options)
    except Exception as error:  # of any class, as the damage of the folder has it
        raise ConfigError(f"{folder} cannot be loaded by transformers: {' '.join(str(error).split())}") from error


def read(folder: Path) -> FolderModel:
    """The ALBERT or BERT in a folder, with float32 weights.

    Raises:
        MissingDataError: transformers is not installed.
        ConfigError: another model, a variant that cannot be computed here, or damaged or missing weights.
    """
    transformers = package(f"the model in {folder}")
    config = load(transformers.AutoConfig, folder)
    family, shape = config.model_type, _shape(config, folder)
    options: dict[str, Any] = {"output_loading_info": True, "dtype": torch.float32}
    name = {"albert": "AlbertForPreTraining", "bert": "BertForPreTraining"}[family]
    theirs, report = load(getattr(transformers, name), folder, **options)
    state, _ = (from_albert if family == "albert" else from_bert)(theirs.state_dict(), shape)
    if shape.projection and shape.embedding_size == shape.hidden_size and _is_identity(theirs.state_dict()):
        shape = replace(shape, projection=False)  # as in exports of this package
        state, _ = from_albert(theirs.state_dict(), shape)
    lacking = {_part_of(key) for key in report["missing_keys"]}
    if None in lacking:
        raise ConfigError(_lacking(folder, report))
    for key, tensor in theirs.state_dict().items():
        if _part_of(key) not in lacking and not tensor.isfinite().all():
            raise ConfigError(f"{folder}: {key} has values that are no finite numbers")
    missing = tuple(part for part in PARTS if part in lacking)
    labels = tuple(getattr(config, "pair_labels", _PAIR_LABELS[family])) if "pair_head" not in missing else ()
    model = PretrainingModel(shape, len(labels), seed=0).eval()
    kept = {key: tensor for key, tensor in state.items() if key.split(".")[0] not in missing}
    model.load_state_dict(kept, strict=False)
    return FolderModel(model, labels, missing)


def _shape(config: Any, folder: Path) -> EncoderShape:
    if config.model_type not in get_args(Family):
        raise ConfigError(f"{folder / CONFIG_FILE}: model_type={config.model_type} (allowed: albert, bert)")
    for key, only in _ONLY.items():
        if getattr(config, key, only) != only:
            raise ConfigError(f"{folder / CONFIG_FILE}: {key}={getattr(config, key)} (allowed: {only})")
    if config.hidden_act not in _ACTIVATIONS:
        allowed = ", ".join(_ACTIVATIONS)
        raise ConfigError(f"{folder / CONFIG_FILE}: hidden_act={config.hidden_act} (allowed: {allowed})")
    is_albert = config.model_type == "albert"
    groups = config.num_hidden_groups if is_albert else config.num_hidden_layers
    return EncoderShape(
        embedding_size=config.embedding_size if is_albert else config.hidden_size,
        projection=is_albert,
        attention_groups=groups,
        ffn_groups=groups,
        hidden_act=_ACTIVATIONS[config.hidden_act],
        **{ours: getattr(config, theirs) for ours, theirs in _KEYS.items()},
    )


def _lacking(folder: Path, report: Mapping[str, Iterable[str]]) -> str:
    """What a folder lacks, and what to do if a trainer gave its tensors other names."""
    keys = sorted(key for key in report["missing_keys"] if _part_of(key) is None)
    text = f"{folder} lacks {len(keys)} tensors of its encoder, {keys[0]} among them"
    others = sorted(report["unexpected_keys"])
    own = next((other for other in others if other.endswith(keys[0].partition(".")[2])), others[0] if others else "")
    return f"{text}; it has {own} instead: save it again with the names of transformers" if own else text


def _part_of(key: str) -> str | None:
    parts = {
        "pooler": "pooler",
        "predictions": "mlm_head",
        "sop_classifier": "pair_head",
        "seq_relationship": "pair_head",
    }
    return next((part for name, part in parts.items() if name in key.split(".")), None)


def _is_identity(tensors: Mapping[str, torch.Tensor]) -> bool:
    weight, bias = tensors[f"{PROJECTION}.weight"], tensors[f"{PROJECTION}.bias"]
    return torch.equal(weight, torch.eye(len(weight))) and not bias.any()


def choose_family(shape: EncoderShape) -> Family:
    """The model of transformers for a shape by common usage: BERT if no layer is shared, else ALBERT.

    Raises:
        ConfigError: no layer is shared, and E is projected to H, which BERT does not do.
    """
    own = list(range(shape.num_layers))
    if shape.num_layers == 1 or not shape.attention_blocks == shape.ffn_blocks == own:
        return "albert"
    if shape.projection:
        raise ConfigError(
            f"no layer is shared, and embedding_size={shape.embedding_size} is projected to model.hidden_size="
            f"{shape.hidden_size}, which BERT does not do; --layout albert writes an ALBERT with a group a layer"
        )
    return "bert"


def write(
    model: PretrainingModel,
    missing: tuple[str, ...],
    pair_labels: tuple[str, ...],
    family: str,
    special_ids: Mapping[str, int],
    folder: Path,
) -> str:
    """Writes weights and config.json of a model; returns the class of transformers that loads them.

    Args:
        special_ids: ids of pad, cls and sep in the tokenizer.

    Raises:
        ConfigError: the family cannot compute the model; names the part.
    """
    transformers, shape, is_albert = package("export"), model.encoder.shape, family == "albert"
    state = {name: tensor for name, tensor in model.state_dict().items() if name.split(".")[0] not in missing}
    tensors = (to_albert if is_albert else to_bert)(state, shape)
    # Without a pair head, ForPreTraining cannot be loaded.
    head = "Model" if "mlm_head" in missing else "ForPreTraining" if pair_labels else "ForMaskedLM"
    content: dict[str, Any] = {
        "architectures": [f"{'Albert' if is_albert else 'Bert'}{head}"],
        **{theirs: getattr(shape, ours) for ours, theirs in _KEYS.items()},
        "hidden_act": shape.hidden_act,
        "attention_probs_dropout_prob": shape.dropout,
        "dtype": "float32",
        "pad_token_id": special_ids["pad"],
        "pair_labels": list(pair_labels),
    }
    if is_albert:
        content |= {
            "embedding_size": shape.embedding_size,
            "num_hidden_groups": len(set(shape.ffn_blocks)),
            "bos_token_id": special_ids["cls"],
            "eos_token_id": special_ids["sep"],
        }
        if len(pair_labels) > 2:  # transformers uses it as the size of the pair head
            content["id2label"] = dict(enumerate(pair_labels))
    (transformers.AlbertConfig if is_albert else transformers.BertConfig)(**content).save_pretrained(folder)
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    safetensors.torch.save_file(contiguous, folder / WEIGHTS, metadata={"format": "pt"})  # transformers requires it
    return content["architectures"][0]
