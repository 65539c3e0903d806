"""Conversion of tensor names to and from ALBERT and BERT in transformers; this module reads and writes no files."""

from collections.abc import Mapping

import torch

from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape

Tensors = dict[str, torch.Tensor]

PROJECTION = "albert.encoder.embedding_hidden_mapping_in"

# Our module, and that of ALBERT and of BERT. Rows with {block} apply to every block, {layer} is that of the block.
_ALBERT_LAYER = "albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
_BERT_LAYER = "bert.encoder.layer.{block}"
_MODULES = (
    ("encoder.embeddings.word_embeddings", "albert.embeddings.word_embeddings", "bert.embeddings.word_embeddings"),
    (
        "encoder.embeddings.token_type_embeddings",
        "albert.embeddings.token_type_embeddings",
        "bert.embeddings.token_type_embeddings",
    ),
    (
        "encoder.embeddings.position_embeddings",
        "albert.embeddings.position_embeddings",
        "bert.embeddings.position_embeddings",
    ),
    ("encoder.embeddings.layer_norm", "albert.embeddings.LayerNorm", "bert.embeddings.LayerNorm"),
    ("encoder.attention_blocks.{block}.query", "{layer}.attention.query", "{layer}.attention.self.query"),
    ("encoder.attention_blocks.{block}.key", "{layer}.attention.key", "{layer}.attention.self.key"),
    ("encoder.attention_blocks.{block}.value", "{layer}.attention.value", "{layer}.attention.self.value"),
    ("encoder.attention_blocks.{block}.output", "{layer}.attention.dense", "{layer}.attention.output.dense"),
    (
        "encoder.attention_blocks.{block}.layer_norm",
        "{layer}.attention.LayerNorm",
        "{layer}.attention.output.LayerNorm",
    ),
    ("encoder.ffn_blocks.{block}.intermediate", "{layer}.ffn", "{layer}.intermediate.dense"),
    ("encoder.ffn_blocks.{block}.output", "{layer}.ffn_output", "{layer}.output.dense"),
    ("encoder.ffn_blocks.{block}.layer_norm", "{layer}.full_layer_layer_norm", "{layer}.output.LayerNorm"),
    ("pooler.dense", "albert.pooler", "bert.pooler.dense"),
    ("mlm_head", "predictions", "cls.predictions"),
    ("mlm_head.dense", "predictions.dense", "cls.predictions.transform.dense"),
    ("mlm_head.layer_norm", "predictions.LayerNorm", "cls.predictions.transform.LayerNorm"),
    ("pair_head", "sop_classifier.classifier", "cls.seq_relationship"),
)


def to_albert(tensors: Mapping[str, torch.Tensor], shape: EncoderShape) -> Tensors:
    """The state of a PretrainingModel with the names of AlbertForPreTraining, tied weights once.

    Raises:
        ConfigError: the sharing is not possible in transformers.
    """
    _check_parts(shape)
    renamed = _rename(tensors, _albert_modules(shape))
    if not shape.projection:
        # transformers always projects, so that equal sizes need the identity.
        dtype = tensors["encoder.embeddings.word_embeddings.weight"].dtype
        renamed[f"{PROJECTION}.weight"] = torch.eye(shape.hidden_size, dtype=dtype)
        renamed[f"{PROJECTION}.bias"] = torch.zeros(shape.hidden_size, dtype=dtype)
    return renamed


def from_albert(tensors: Mapping[str, torch.Tensor], shape: EncoderShape) -> tuple[Tensors, list[str]]:
    """The state of a PretrainingModel from any ALBERT of transformers, and the unused names.

    Heads that the source does not have are absent. Copies of tied weights count as unused.

    Raises:
        ConfigError: a tensor of the encoder is missing, the shape lacks a projection, or the sharing is not possible.
    """
    tensors = _with_base(tensors, "albert.")
    if not shape.projection:
        identity = torch.eye(shape.hidden_size)
        weight = tensors.pop(f"{PROJECTION}.weight", identity)
        bias = tensors.pop(f"{PROJECTION}.bias", torch.zeros(shape.hidden_size))
        if not torch.equal(weight.float(), identity) or bias.any():
            raise ConfigError(f"{PROJECTION} is not the identity, so the shape must have a projection")
    return _rename_back(tensors, _albert_modules(shape))


def to_bert(tensors: Mapping[str, torch.Tensor], shape: EncoderShape) -> Tensors:
    """The state of a PretrainingModel with the names of BertForPreTraining, tied weights once.

    Raises:
        ConfigError: shared layers, factorised embeddings, or not exactly two pair labels, which BERT does not allow.
    """
    _check_parts(shape)
    num_labels = len(tensors["pair_head.bias"]) if "pair_head.bias" in tensors else 2
    if num_labels != 2:
        raise ConfigError(f"inter_sentence has {num_labels} labels; BertForPreTraining allows only 2")
    return _rename(tensors, _bert_modules(shape))


def from_bert(tensors: Mapping[str, torch.Tensor], shape: EncoderShape) -> tuple[Tensors, list[str]]:
    """The state of a PretrainingModel from any BERT of transformers, and the unused names.

    Heads that the source does not have are absent. Copies of tied weights count as unused.

    Raises:
        ConfigError: a tensor of the encoder is missing, or the shape is not possible in BERT.
    """
    return _rename_back(_with_base(tensors, "bert."), _bert_modules(shape))


def _check_parts(shape: EncoderShape) -> None:
    if shape.other_parts:
        raise ConfigError(f"{', '.join(shape.other_parts)}: ALBERT and BERT in transformers do not have this")


def _albert_modules(shape: EncoderShape) -> dict[str, str]:
    num_layers, num_inner = shape.num_layers, shape.inner_group_num
    groups = len(set(shape.ffn_blocks)) // num_inner
    if shape.attention_blocks != shape.ffn_blocks:
        raise ConfigError(
            f"sharing.attention_groups={shape.attention_groups} and sharing.ffn_groups={shape.ffn_groups} differ;"
            " ALBERT in transformers shares only whole layers"
        )
    for layer, block in enumerate(shape.ffn_blocks[::num_inner]):
        if int(layer / (num_layers / groups)) != block // num_inner:
            raise ConfigError(
                f"sharing: layer {layer} (from 0) has block {block}; ALBERT in transformers divides {num_layers} layers"
                f" into {groups} runs of neighbours, by its own rounding"
            )
    modules = {"encoder.embeddings.projection": PROJECTION} if shape.projection else {}
    for block in shape.ffn_blocks:
        group, inner = divmod(block, num_inner)
        layer = _ALBERT_LAYER.format(group=group, inner=inner)
        modules |= {ours.format(block=block): theirs.format(layer=layer) for ours, theirs, _ in _MODULES}
    return modules


def _bert_modules(shape: EncoderShape) -> dict[str, str]:
    own = list(range(shape.num_layers))
    if shape.attention_blocks != own or shape.ffn_blocks != own:
        raise ConfigError("layers share blocks, but in BERT each layer has separate blocks: sharing=not-shared")
    if shape.projection or shape.embedding_size != shape.hidden_size:
        raise ConfigError(
            f"embedding_size={shape.embedding_size} is projected to model.hidden_size={shape.hidden_size};"
            " BERT's embeddings have the hidden size"
        )
    layers = [_BERT_LAYER.format(block=block) for block in own]
    return {
        ours.format(block=block): theirs.format(layer=layers[block]) for block in own for ours, _, theirs in _MODULES
    }


def _rename(tensors: Mapping[str, torch.Tensor], modules: dict[str, str]) -> Tensors:
    renamed = {}
    for name, tensor in tensors.items():
        module, _, kind = name.rpartition(".")
        renamed[f"{modules[module]}.{kind}"] = tensor
    return renamed


def _rename_back(tensors: Tensors, modules: dict[str, str]) -> tuple[Tensors, list[str]]:
    ours = {theirs: ours for ours, theirs in modules.items()}
    renamed, no_place = {}, []
    for name, tensor in tensors.items():
        module, _, kind = name.rpartition(".")
        if module in ours:
            renamed[f"{ours[module]}.{kind}"] = tensor
        else:
            no_place.append(name)
    known = {name.rpartition(".")[0] for name in renamed}
    missing = [theirs for name, theirs in modules.items() if name.startswith("encoder.") and name not in known]
    if missing:
        raise ConfigError(f"tensors of the encoder are missing: {', '.join(missing)}")
    return renamed, no_place


def _with_base(tensors: Mapping[str, torch.Tensor], base: str) -> Tensors:
    if any(name.startswith(base) for name in tensors):
        return dict(tensors)
    return {base + name: tensor for name, tensor in tensors.items()}  # a bare encoder has names without the prefix
