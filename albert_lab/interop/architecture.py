"""Conversion between the shape of an encoder and a config.json of transformers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from albert_lab import files
from albert_lab.config.model import MAX_LAYERS
from albert_lab.model.shape import EncoderShape

Family = Literal["albert", "bert"]

# Names in transformers for the same function.
ACTIVATIONS = {
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
}
# The pair labels of the pre-training head of each family, unless the folder sets others.
PAIR_LABELS = {"albert": ("consecutive", "swapped"), "bert": ("consecutive", "other-document")}
PAIR_LABELS_KEY = "pair_labels"

_Count = Annotated[int, Field(ge=1)]
_Depth = Annotated[int, Field(ge=1, le=MAX_LAYERS)]
_Positive = Annotated[float, Field(gt=0, lt=1e9)]


@dataclass(frozen=True)
class Architecture:
    """The content of a config.json. pair_labels are the kinds of pair that its pair head, if any, classifies."""

    family: Family
    shape: EncoderShape
    pair_labels: tuple[str, ...]


class _Config(BaseModel):
    """The keys of a config.json that are read; the file has more."""

    model_config = ConfigDict(strict=True)

    model_type: Family
    # Keys that change the computation, with the only supported value.
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False
    tie_word_embeddings: Literal[True] = True  # the MLM head uses the word embeddings
    hidden_act: Literal["gelu_new", "gelu_pytorch_tanh", "gelu", "gelu_python", "relu"]
    vocab_size: _Count
    embedding_size: _Count | None = None
    hidden_size: _Count
    num_hidden_layers: _Depth
    num_hidden_groups: _Count = 1
    inner_group_num: _Depth = 1
    num_attention_heads: _Count
    intermediate_size: _Count
    max_position_embeddings: _Count
    type_vocab_size: _Count = 2
    layer_norm_eps: _Positive = 1e-12
    initializer_range: _Positive = 0.02
    hidden_dropout_prob: float | None = Field(default=None, ge=0, lt=1)
    pair_labels: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _parts_fit(self) -> "_Config":
        heads, groups = self.num_attention_heads, self.num_hidden_groups
        if self.hidden_size % heads:
            raise ValueError(f"num_attention_heads={heads} does not divide hidden_size={self.hidden_size}")
        if groups > self.num_hidden_layers:
            raise ValueError(f"num_hidden_groups={groups} is more than num_hidden_layers={self.num_hidden_layers}")
        if self.model_type == "albert" and self.embedding_size is None:
            raise ValueError("embedding_size must be given")
        return self


def read(file: Path) -> Architecture:
    """The architecture of a config.json; for ALBERT with E = H, it has the projection that transformers adds.

    Raises:
        DamagedFileError: another kind of model, a missing or invalid key, or an unsupported variant.
    """
    config = files.read_json(file, _Config)
    is_albert = config.model_type == "albert"
    groups = config.num_hidden_groups if is_albert else config.num_hidden_layers
    dropout = config.hidden_dropout_prob
    shape = EncoderShape(
        vocab_size=config.vocab_size,
        embedding_size=config.embedding_size if is_albert and config.embedding_size else config.hidden_size,
        projection=is_albert,
        hidden_size=config.hidden_size,
        num_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
        max_position_embeddings=config.max_position_embeddings,
        attention_groups=groups,
        ffn_groups=groups,
        hidden_act=ACTIVATIONS[config.hidden_act],
        layer_norm_eps=config.layer_norm_eps,
        initializer_range=config.initializer_range,
        dropout=(0.0 if is_albert else 0.1) if dropout is None else dropout,
        type_vocab_size=config.type_vocab_size,
        inner_group_num=config.inner_group_num if is_albert else 1,
    )
    labels = PAIR_LABELS[config.model_type] if config.pair_labels is None else config.pair_labels
    return Architecture(config.model_type, shape, labels)


def write(architecture: Architecture, special_ids: Mapping[str, int]) -> dict[str, Any]:
    """The config.json of an architecture; special_ids are those of pad, cls and sep in the tokenizer."""
    shape, labels = architecture.shape, architecture.pair_labels
    is_albert = architecture.family == "albert"
    family = "Albert" if is_albert else "Bert"
    content: dict[str, Any] = {
        # Without a pair head, ForPreTraining cannot be loaded.
        "architectures": [f"{family}ForPreTraining" if labels else f"{family}ForMaskedLM"],
        "model_type": architecture.family,
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_attention_heads,
        "intermediate_size": shape.intermediate_size,
        "hidden_act": shape.hidden_act,
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.dropout,
        "max_position_embeddings": shape.max_position_embeddings,
        "type_vocab_size": shape.type_vocab_size,
        "initializer_range": shape.initializer_range,
        "layer_norm_eps": shape.layer_norm_eps,
        "tie_word_embeddings": True,
        "dtype": "float32",
        "pad_token_id": special_ids["pad"],
        PAIR_LABELS_KEY: list(labels),
    }
    if is_albert:
        content |= {
            "embedding_size": shape.embedding_size,
            "num_hidden_groups": shape.ffn_groups,
            "inner_group_num": shape.inner_group_num,
            "classifier_dropout_prob": 0.1,  # value of the released v2 models; pre-training does not use it
            "bos_token_id": special_ids["cls"],
            "eos_token_id": special_ids["sep"],
        }
        if len(labels) > 2:  # transformers uses it as the size of the pair head
            content["id2label"] = {str(number): label for number, label in enumerate(labels)}
            content["label2id"] = {label: number for number, label in enumerate(labels)}
    return content
