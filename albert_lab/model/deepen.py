"""The tensors of a deeper encoder from those of a shallower one."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from albert_lab.errors import ConfigError
from albert_lab.model.shape import EncoderShape

AnyTensor = TypeVar("AnyTensor")

_BLOCK = re.compile(r"(encoder\.(?:attention|ffn)_blocks)\.(\d+)\.(.+)")
_DEPTHS = ("num_layers", "attention_groups", "ffn_groups")


def deepen(tensors: Mapping[str, AnyTensor], shallow: EncoderShape, deep: EncoderShape) -> dict[str, AnyTensor]:
    """The state of a PretrainingModel of the deep shape.

    Blocks shared by all layers serve more layers. Where each layer, or group of layers, has its own, each block stands
    for as many consecutive ones: layers A B C become A A B B C C. Everything else is taken as it is.

    Source: the paper (section 4.9) has the case of all-shared layers alone; the copies are those of consecutive
    groups, so that a layer's relative depth stays what it was.

    Raises:
        ConfigError: shapes between which there is no such map.
    """
    check_deepening(shallow, deep)
    sources = {"encoder.attention_blocks": _sources(shallow.attention_groups, deep.attention_groups)}
    sources["encoder.ffn_blocks"] = _sources(shallow.ffn_groups, deep.ffn_groups)
    found: dict[str, AnyTensor] = {}
    for name, tensor in tensors.items():
        match = _BLOCK.fullmatch(name)
        if match is None:
            found[name] = tensor
            continue
        blocks, index, rest = match.groups()
        for target, source in enumerate(sources[blocks]):
            if source == int(index):
                found[f"{blocks}.{target}.{rest}"] = tensor
    return found


def check_deepening(shallow: EncoderShape, deep: EncoderShape) -> None:
    """Refuse a pair of shapes between which no weights can be passed on.

    Raises:
        ConfigError: the deeper is shallower, has another size than in depth, or blocks that do not divide.
    """
    as_deep = replace(shallow, dropout=deep.dropout, **{key: getattr(deep, key) for key in _DEPTHS})
    for key, value in vars(deep).items():
        if getattr(as_deep, key) != value:
            raise ConfigError(f"weights cannot be passed on from {key}={getattr(shallow, key)} to {key}={value}")
    if deep.num_layers < shallow.num_layers:
        raise ConfigError(f"weights of {shallow.num_layers} layers cannot be passed on to only {deep.num_layers}")
    for key in ("attention_groups", "ffn_groups"):
        before, after = getattr(shallow, key), getattr(deep, key)
        if after % before:
            raise ConfigError(
                f"weights cannot be passed on from {key}={before} to {key}={after}:"
                f" each block stands for a whole number of new ones, so {after} must be a multiple of {before}"
            )


def _sources(before: int, after: int) -> list[int]:
    """The old block that each new one is a copy of."""
    return [block * before // after for block in range(after)]
