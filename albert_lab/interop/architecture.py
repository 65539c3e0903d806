"""Conversion between the shape of an encoder and a config.json of transformers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from albert_lab.config.schema import MAX_LAYERS
from albert_lab.errors import ConfigError
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
# Keys that change the computation, with the only supported value.
_ONLY = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}


@dataclass(frozen=True)
class Architecture:
    """The content of a config.json. pair_labels are the kinds of pair that its pair head, if any, classifies."""

    family: Family
    shape: EncoderShape
    pair_labels: tuple[str, ...]


def read(content: Mapping[str, Any], origin: str) -> Architecture:
    """The architecture of a config.json; for ALBERT with E = H, it has the projection that transformers adds.

    Raises:
        ConfigError: another kind of model, a missing or invalid key, or an unsupported variant; names origin and key.
    """
    family = content.get("model_type")
    if family not in ("albert", "bert"):
        raise ConfigError(f"{origin}: model_type={family} cannot be read (allowed: albert, bert)")
    for key, only in _ONLY.items():
        if content.get(key, only) != only:
            raise ConfigError(f"{origin}: {key}={content[key]} is not supported (allowed: {only})")
    if content.get("tie_word_embeddings", True) is not True:
        raise ConfigError(
            f"{origin}: tie_word_embeddings=false is not supported: the MLM head uses the word embeddings"
        )

    def integer(key: str, default: int | None = None, most: int | None = None) -> int:
        value = content.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{origin}: {key}={value} is not a positive integer")
        if most is not None and value > most:
            raise ConfigError(f"{origin}: {key}={value} is more than {most}")
        return value

    def number(key: str, default: float, *, or_zero: bool = False, below: float = 1e9) -> float:
        value = content.get(key, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < below or (value == 0 and not or_zero):
            start = "from 0" if or_zero else "above 0"
            raise ConfigError(f"{origin}: {key}={value} is not a number {start} and less than {below:g}")
        return float(value)

    activation = content.get("hidden_act")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ConfigError(f"{origin}: hidden_act={activation} is not supported (allowed: {', '.join(ACTIVATIONS)})")
    hidden_size, heads = integer("hidden_size"), integer("num_attention_heads")
    if hidden_size % heads:
        raise ConfigError(f"{origin}: num_attention_heads={heads} does not divide hidden_size={hidden_size}")
    num_layers = integer("num_hidden_layers", most=MAX_LAYERS)
    is_albert = family == "albert"
    groups = integer("num_hidden_groups", 1) if is_albert else num_layers
    if groups > num_layers:
        raise ConfigError(f"{origin}: num_hidden_groups={groups} is more than num_hidden_layers={num_layers}")
    shape = EncoderShape(
        vocab_size=integer("vocab_size"),
        embedding_size=integer("embedding_size") if is_albert else hidden_size,
        projection=is_albert,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_attention_heads=heads,
        intermediate_size=integer("intermediate_size"),
        max_position_embeddings=integer("max_position_embeddings"),
        attention_groups=groups,
        ffn_groups=groups,
        hidden_act=ACTIVATIONS[activation],
        layer_norm_eps=number("layer_norm_eps", 1e-12),
        initializer_range=number("initializer_range", 0.02),
        dropout=number("hidden_dropout_prob", 0.0 if is_albert else 0.1, or_zero=True, below=1.0),
        type_vocab_size=integer("type_vocab_size", 2),
        inner_group_num=integer("inner_group_num", 1, most=MAX_LAYERS) if is_albert else 1,
    )
    labels = content.get(PAIR_LABELS_KEY, PAIR_LABELS[family])
    if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
        raise ConfigError(f"{origin}: {PAIR_LABELS_KEY}={labels} is not a list of kinds of pair")
    return Architecture(family, shape, tuple(labels))


def write(architecture: Architecture, special_ids: Mapping[str, int]) -> dict[str, Any]:
    """The config.json of an architecture.

    Args:
        architecture: The architecture to write.
        special_ids: Ids of pad, cls and sep in the tokenizer.
    """
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
