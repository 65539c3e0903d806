"""Initial weights of a deeper encoder from the weights of a shallower one."""

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

    Blocks shared by all layers are used by more layers. If each layer, or group of layers, has a separate block, each
    block is copied to the same number of consecutive blocks: layers A B C become A A B B C C. All else is unchanged.

    Source: the paper (section 4.9) has only the case of all-shared layers. Consecutive copies keep a layer's relative
    depth.

    Raises:
        ConfigError: the shapes do not allow this.
    """
    check_deepening(shallow, deep)
    sources = {
        f"encoder.{kind}": _sources(getattr(shallow, kind), getattr(deep, kind))
        for kind in ("attention_blocks", "ffn_blocks")
    }
    deeper: dict[str, AnyTensor] = {}
    for name, tensor in tensors.items():
        if match := _BLOCK.fullmatch(name):
            blocks, index, rest = match.groups()
            copies = [target for target, source in enumerate(sources[blocks]) if source == int(index)]
            deeper |= {f"{blocks}.{target}.{rest}": tensor for target in copies}
        else:
            deeper[name] = tensor
    return deeper


def check_deepening(shallow: EncoderShape, deep: EncoderShape) -> None:
    """Check that weights of the first shape can be copied to the second.

    Raises:
        ConfigError: the second is shallower, differs in more than depth, or its number of blocks is not a multiple.
    """
    as_deep = replace(shallow, dropout=deep.dropout, **{key: getattr(deep, key) for key in _DEPTHS})
    for key, value in vars(deep).items():
        if getattr(as_deep, key) != value:
            raise ConfigError(f"weights cannot be passed on from {key}={getattr(shallow, key)} to {key}={value}")
    if deep.num_layers < shallow.num_layers:
        raise ConfigError(f"weights of {shallow.num_layers} layers cannot be passed on to only {deep.num_layers}")
    for kind in ("attention", "ffn"):
        before, after = (len({*getattr(shape, f"{kind}_blocks")}) for shape in (shallow, deep))
        if after % before:
            groups = [f"{kind}_groups={getattr(shape, f'{kind}_groups')}" for shape in (shallow, deep)]
            raise ConfigError(
                f"weights cannot be passed on from {groups[0]} to {groups[1]}:"
                f" each block is repeated a whole number of times, so {after} must be a multiple of {before}"
            )


def _sources(before: list[int], after: list[int]) -> list[int]:
    """For each block of the deep encoder, the number of the block that it copies."""
    number = len({*after})
    return [block * len({*before}) // number for block in range(number)]
