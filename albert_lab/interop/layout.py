"""ALBERT and BERT of transformers: their names of tensors, and folders, read and written by its own
classes.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import safetensors.torch
import torch

from albert_lab.config.schema import MAX_LAYERS
from albert_lab.config.section import PARTS as BUILT_IN_PARTS
from albert_lab.data.tokenizer import Tokenizer
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.files import read_json
from albert_lab.interop import weights
from albert_lab.interop.weights import Tensors
from albert_lab.model.encoder import PretrainingModel
from albert_lab.model.shape import EncoderShape

Family = Literal["albert", "bert"]
Names = tuple[str, ...]
CONFIG_FILE = "config.json"
PROJECTION = "albert.encoder.embedding_hidden_mapping_in"
_LAYERS = {
    "albert": "albert.encoder.albert_layer_groups.{}.albert_layers.0",
    "bert": "bert.encoder.layer.{}",
}
# Our module in a block of a layer, and that of ALBERT and of BERT in the layer.
_IN_LAYERS = (
    ("attention_blocks.{}.query", "attention.query", "attention.self.query"),
    ("attention_blocks.{}.key", "attention.key", "attention.self.key"),
    ("attention_blocks.{}.value", "attention.value", "attention.self.value"),
    ("attention_blocks.{}.output", "attention.dense", "attention.output.dense"),
    ("attention_blocks.{}.layer_norm", "attention.LayerNorm", "attention.output.LayerNorm"),
    ("ffn_blocks.{}.intermediate", "ffn", "intermediate.dense"),
    ("ffn_blocks.{}.output", "ffn_output", "output.dense"),
    ("ffn_blocks.{}.layer_norm", "full_layer_layer_norm", "output.LayerNorm"),
)
# Our module, and that of ALBERT and of BERT.
_AROUND = (
    ("encoder.embeddings.layer_norm", "albert.embeddings.LayerNorm", "bert.embeddings.LayerNorm"),
    ("pooler.dense", "albert.pooler", "bert.pooler.dense"),
    ("mlm_head", "predictions", "cls.predictions"),
    ("mlm_head.dense", "predictions.dense", "cls.predictions.transform.dense"),
    ("mlm_head.layer_norm", "predictions.LayerNorm", "cls.predictions.transform.LayerNorm"),
    ("pair_head", "sop_classifier.classifier", "cls.seq_relationship"),
)
# Names in transformers for the same function.
_ACTIVATIONS = {
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_python": "gelu",
    "gelu_new": "gelu_new",
    "gelu": "gelu",
    "relu": "relu",
}
# Fields of a shape, and their keys in a config.json.
_KEYS = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_position_embeddings",
    "layer_norm_eps": "layer_norm_eps",
    "initializer_range": "initializer_range",
    "num_layers": "num_hidden_layers",
    "dropout": "hidden_dropout_prob",
}
# Keys of a config.json that change what is computed, with the values that both sides have.
_ALLOWED = {
    "hidden_act": tuple(_ACTIVATIONS),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
    "type_vocab_size": (2,),
    "inner_group_num": (1,),
    "num_hidden_layers": range(1, MAX_LAYERS + 1),
    "num_attention_heads": range(1, MAX_LAYERS + 1),
}
# The pair labels of the pre-training head of each family, unless the folder sets others by our key,
# pair_labels.
_PAIR_LABELS = {"albert": ("consecutive", "swapped"), "bert": ("consecutive", "other-document")}
# Parts that published checkpoints often lack, by a part of their names in transformers.
_PART_OF = {
    "pooler": "pooler",
    "predictions": "mlm_head",
    "sop_classifier": "pair_head",
    "seq_relationship": "pair_head",
}
_REMEDY = "albert_lab.load(RUN) opens the run itself"
PARTS = ("pooler", "mlm_head", "pair_head")  # ours


def modules(shape: EncoderShape, family: str) -> dict[str, str]:
    """The name in AlbertForPreTraining or BertForPreTraining of each of our modules.

    Raises:
        ConfigError: transformers cannot compute an encoder of this shape; names the setting.
    """
    blocks = shape.ffn_blocks
    groups = len({*shape.ffn_blocks})
    if shape.other_parts:
        raise ConfigError(
            f"{', '.join(shape.other_parts)}: ALBERT and BERT in transformers lack this; {_REMEDY}"
        )
    # The groups of layers as transformers computes them.
    theirs = [int(layer / (shape.num_layers / groups)) for layer in range(shape.num_layers)]
    if not shape.attention_blocks == blocks == theirs:
        shared = (
            f"sharing.attention_groups={shape.attention_groups} and "
            f"sharing.ffn_groups={shape.ffn_groups}"
        )
        raise ConfigError(
            f"{shared}: transformers shares whole layers, in runs by its own rounding; {_REMEDY}"
        )
    column = 1 + get_args(Family).index(family)
    names = {row[0]: row[column] for row in _AROUND}
    for kind in ("word", "token_type", "position"):
        names[f"encoder.embeddings.{kind}_embeddings"] = f"{family}.embeddings.{kind}_embeddings"
    if shape.projection:
        names["encoder.embeddings.projection"] = PROJECTION
    for block in set(blocks):
        layer = _LAYERS[family].format(block)
        for row in _IN_LAYERS:
            names[f"encoder.{row[0].format(block)}"] = f"{layer}.{row[column]}"
    return names


def to_transformers(
    tensors: Mapping[str, torch.Tensor], shape: EncoderShape, family: Family
) -> Tensors:
    """The state of a PretrainingModel by the names of transformers, tied weights once; ConfigError
    as in modules().
    """
    renamed = _renamed(tensors, modules(shape, family))
    if family == "albert" and not shape.projection:
        # transformers always projects, so that equal sizes need the identity.
        dtype = tensors["encoder.embeddings.word_embeddings.weight"].dtype
        renamed[f"{PROJECTION}.weight"] = torch.eye(shape.hidden_size, dtype=dtype)
        renamed[f"{PROJECTION}.bias"] = torch.zeros(shape.hidden_size, dtype=dtype)
    return renamed


def from_transformers(
    tensors: Mapping[str, torch.Tensor], shape: EncoderShape, family: Family
) -> Tensors:
    """The state of a PretrainingModel from that of AlbertForPreTraining or BertForPreTraining.

    Heads that the source does not have are absent; a projection that the shape does not have is
    left out. ConfigError as in modules().
    """
    ours = {theirs: ours for ours, theirs in modules(shape, family).items()}
    return _renamed(tensors, ours)


def _renamed(tensors: Mapping[str, torch.Tensor], names: Mapping[str, str]) -> Tensors:
    """The tensors of those modules that have a new name, by it."""
    renamed: Tensors = {}
    for name, tensor in tensors.items():
        module, _, kind = name.rpartition(".")
        if module in names:
            renamed[f"{names[module]}.{kind}"] = tensor
    return renamed


def package(purpose: str) -> Any:
    """The package transformers, without its warnings and progress bars; or MissingDataError: it is
    not installed.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingDataError(
            f"{purpose} needs a package: pip install -e '.[transformers]'"
        ) from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def load(loader: Any, folder: Path, **options: Any) -> Any:
    """What a class of transformers loads from a folder; nothing is downloaded, and no code of the
    folder is executed.

    Raises:
        ConfigError: the folder cannot be loaded.
    """
    # without it, it asks the user
    options |= {"local_files_only": True, "trust_remote_code": False}
    try:
        return loader.from_pretrained(None if "state_dict" in options else folder, **options)
    except Exception as error:  # of any class, as the damage of the folder has it
        raise ConfigError(
            f"{folder} cannot be loaded by transformers: {' '.join(str(error).split())}"
        ) from error


def read(folder: Path) -> tuple[PretrainingModel, Names, Names]:
    """The ALBERT or BERT in a folder in evaluation mode, its pair labels, and the PARTS that it
    lacks.

    Weights are in float32. A pooler and an MLM head that the folder lacks are random; a pair head
    is left out.

    Raises:
        MissingDataError: transformers is not installed.
        ConfigError: another model, a variant that cannot be computed here, or damaged or missing
            weights.
    """
    transformers = package(f"the model in {folder}")
    tensors = weights.read(folder)
    # Before transformers reads the file, which would look for the code of a family that it does not
    # know.
    kind = read_json(folder / CONFIG_FILE, dict[str, Any]).get("model_type")
    if kind not in get_args(Family):
        raise ConfigError(
            f"{folder / CONFIG_FILE}: model_type={kind} (allowed: {', '.join(get_args(Family))})"
        )
    config = load(transformers.AutoConfig, folder)
    family = config.model_type
    shape = _shape(config, folder)
    loader = getattr(transformers, f"{family.title()}ForPreTraining")
    theirs, report = load(
        loader,
        folder,
        config=config,
        state_dict=tensors,
        dtype=torch.float32,
        output_loading_info=True,
        attn_implementation="eager",  # config.json may name code of the hub
    )
    different = sorted({*report["missing_keys"], *report["unexpected_keys"]})
    in_encoder = [key for key in different if {"encoder", "embeddings"} & {*key.split(".")}]
    if in_encoder:
        raise ConfigError(
            f"{folder}: {in_encoder[0]} of its encoder is only in the weights or only in the model "
            f"of {CONFIG_FILE}: save both again with the names of transformers"
        )
    missing = tuple(part for part in PARTS if part in map(_part_of, report["missing_keys"]))
    state = theirs.state_dict().items()
    tensors = {name: tensor for name, tensor in state if _part_of(name) not in missing}
    if shape.projection and torch.equal(
        tensors[f"{PROJECTION}.weight"], torch.eye(shape.hidden_size)
    ):
        # as in exports of this package
        shape = replace(shape, projection=bool(tensors[f"{PROJECTION}.bias"].any()))
    state = from_transformers(tensors, shape, family)
    num_labels = len(state.get("pair_head.bias", ()))
    labels = getattr(config, "pair_labels", _PAIR_LABELS[family])
    if num_labels and (not isinstance(labels, list | tuple) or len(labels) != num_labels):
        raise ConfigError(
            f"{folder / CONFIG_FILE}: pair_labels={labels}: the pair head has {num_labels} labels"
        )
    model = PretrainingModel(shape, num_labels, seed=0).eval()
    model.load_state_dict(state, strict=False)  # missing parts stay random
    return model, tuple(labels[:num_labels]), missing


def _shape(config: Any, folder: Path) -> EncoderShape:
    for key, allowed in _ALLOWED.items():
        value = getattr(config, key, allowed[0])
        if value not in allowed:
            raise ConfigError(f"{folder / CONFIG_FILE}: {key}={value} (allowed: {allowed})")
    is_albert = config.model_type == "albert"
    groups = config.num_hidden_groups if is_albert else config.num_hidden_layers
    return EncoderShape(
        embedding_size=config.embedding_size if is_albert else config.hidden_size,
        projection=is_albert,
        attention_groups=groups,
        ffn_groups=groups,
        hidden_act=_ACTIVATIONS[config.hidden_act],
        **BUILT_IN_PARTS,
        **{ours: getattr(config, theirs) for ours, theirs in _KEYS.items()},
    )


def _part_of(key: str) -> str | None:
    return next((part for name, part in _PART_OF.items() if name in key.split(".")), None)


def write(
    model: PretrainingModel, missing: Names, pair_labels: Names, tokenizer: Tokenizer, folder: Path
) -> str:
    """Writes weights and config.json of a model; returns the class of transformers that loads them.

    It is a BERT if no layer is shared, E = H and there are no more than two pair labels, else an
    ALBERT.

    Args:
        missing: parts that the model lacks or has with random weights; they are not written.

    Raises:
        ConfigError: transformers cannot compute the model; names the part.
        MissingDataError: transformers is not installed.
    """
    transformers = package("export")
    shape = model.encoder.shape
    num_blocks = len({*shape.ffn_blocks})
    is_shared = shape.num_layers == 1 or num_blocks < shape.num_layers
    family = "albert" if is_shared or shape.projection or len(pair_labels) > 2 else "bert"
    state = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if name.split(".")[0] not in missing
    }
    # Without a pair head, ForPreTraining cannot be loaded.
    head = "Model" if "mlm_head" in missing else "ForPreTraining" if pair_labels else "ForMaskedLM"
    model_class = f"{family.title()}{head}"
    content: dict[str, Any] = {
        "architectures": [model_class],
        **{theirs: getattr(shape, ours) for ours, theirs in _KEYS.items()},
        "hidden_act": shape.hidden_act,
        "attention_probs_dropout_prob": shape.dropout,
        "dtype": "float32",
        "pad_token_id": tokenizer.pad_id,
        "pair_labels": list(pair_labels),
    }
    if family == "albert":
        content |= {
            "embedding_size": shape.embedding_size,
            "num_hidden_groups": num_blocks,
            "bos_token_id": tokenizer.cls_id,
            "eos_token_id": tokenizer.sep_id,
        }
        if len(pair_labels) > 2:  # transformers uses it as the size of the pair head
            content["id2label"] = dict(enumerate(pair_labels))
    transformers.AutoConfig.for_model(family, **content).save_pretrained(folder)
    tensors = to_transformers(state, shape, family)
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    # transformers requires the metadata
    safetensors.torch.save_file(contiguous, folder / weights.WEIGHTS, metadata={"format": "pt"})
    return model_class
