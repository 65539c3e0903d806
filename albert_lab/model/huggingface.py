"""Conversion of tensor names to and from ALBERT and BERT in transformers; this module reads and writes no files."""

from collections.abc import Mapping

import torch

from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape

Tensors = dict[str, torch.Tensor]

_BASES = _ALBERT, _BERT = ("albert", "bert")
PROJECTION = "albert.encoder.embedding_hidden_mapping_in"

# Our module in a block of a layer, and that of ALBERT and of BERT in the layer.
_IN_LAYERS = (
    ("attention_blocks.{block}.query", "attention.query", "attention.self.query"),
    ("attention_blocks.{block}.key", "attention.key", "attention.self.key"),
    ("attention_blocks.{block}.value", "attention.value", "attention.self.value"),
    ("attention_blocks.{block}.output", "attention.dense", "attention.output.dense"),
    ("attention_blocks.{block}.layer_norm", "attention.LayerNorm", "attention.output.LayerNorm"),
    ("ffn_blocks.{block}.intermediate", "ffn", "intermediate.dense"),
    ("ffn_blocks.{block}.output", "ffn_output", "output.dense"),
    ("ffn_blocks.{block}.layer_norm", "full_layer_layer_norm", "output.LayerNorm"),
)
# Our module, and that of ALBERT and of BERT.
_AROUND = (
    ("encoder.embeddings.word_embeddings", *(f"{base}.embeddings.word_embeddings" for base in _BASES)),
    ("encoder.embeddings.token_type_embeddings", *(f"{base}.embeddings.token_type_embeddings" for base in _BASES)),
    ("encoder.embeddings.position_embeddings", *(f"{base}.embeddings.position_embeddings" for base in _BASES)),
    ("encoder.embeddings.layer_norm", *(f"{base}.embeddings.LayerNorm" for base in _BASES)),
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
    tensors = _with_base(tensors, _ALBERT)
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
    return _rename_back(_with_base(tensors, _BERT), _bert_modules(shape))


def _check_parts(shape: EncoderShape) -> None:
    if shape.other_parts:
        raise ConfigError(f"{', '.join(shape.other_parts)}: ALBERT and BERT in transformers do not have this")


def _albert_modules(shape: EncoderShape) -> dict[str, str]:
    num_layers, blocks, groups = shape.num_layers, shape.ffn_blocks, len(set(shape.ffn_blocks))
    if shape.attention_blocks != blocks:
        raise ConfigError(
            f"sharing.attention_groups={shape.attention_groups} and sharing.ffn_groups={shape.ffn_groups} differ;"
            " ALBERT in transformers shares only whole layers"
        )
    for layer, block in enumerate(blocks):
        if int(layer / (num_layers / groups)) != block:
            raise ConfigError(
                f"sharing: layer {layer} (from 0) has block {block}; ALBERT in transformers divides {num_layers} layers"
                f" into {groups} runs of neighbours, by its own rounding"
            )
    layers = {block: f"albert.encoder.albert_layer_groups.{block}.albert_layers.0" for block in blocks}
    projection = {"encoder.embeddings.projection": PROJECTION} if shape.projection else {}
    return _modules(_ALBERT, layers) | projection


def _bert_modules(shape: EncoderShape) -> dict[str, str]:
    own = list(range(shape.num_layers))
    if shape.attention_blocks != own or shape.ffn_blocks != own:
        raise ConfigError("layers share blocks, but in BERT each layer has separate blocks: sharing=not-shared")
    if shape.projection or shape.embedding_size != shape.hidden_size:
        raise ConfigError(
            f"embedding_size={shape.embedding_size} is projected to model.hidden_size={shape.hidden_size};"
            " BERT's embeddings have the hidden size"
        )
    return _modules(_BERT, {block: f"bert.encoder.layer.{block}" for block in own})


def _modules(base: str, layers: Mapping[int, str]) -> dict[str, str]:
    """Their name of each of our modules, from that of the layer of each block."""
    column = 1 + _BASES.index(base)
    modules = {row[0]: row[column] for row in _AROUND}
    for block, layer in layers.items():
        modules |= {f"encoder.{row[0].format(block=block)}": f"{layer}.{row[column]}" for row in _IN_LAYERS}
    return modules


def _rename(tensors: Mapping[str, torch.Tensor], modules: dict[str, str]) -> Tensors:
    split = {name.rpartition("."): tensor for name, tensor in tensors.items()}
    return {f"{modules[module]}.{kind}": tensor for (module, _, kind), tensor in split.items()}


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
    if any(name.startswith(f"{base}.") for name in tensors):
        return dict(tensors)
    return {f"{base}.{name}": tensor for name, tensor in tensors.items()}  # a bare encoder has names without the prefix
