"""The shape of an encoder as plain numbers, used to build it, to count its cost, and to start from a shallower one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from albert_lab.config.schema import Groups, RunConfig
from albert_lab.config.section import BUILT_IN, PARTS
from albert_lab.errors import ConfigError

AnyTensor = TypeVar("AnyTensor")
_BLOCK = re.compile(r"encoder\.(attention|ffn)_blocks\.(\d+)\.(.+)")


@dataclass(frozen=True)
class EncoderShape:
    """Sizes and constants of one encoder; the names are those of the configuration.

    projection: whether a linear map projects embedding_size to hidden_size.
    """

    vocab_size: int
    embedding_size: int
    projection: bool
    hidden_size: int
    num_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    attention_groups: Groups
    ffn_groups: Groups
    hidden_act: str
    layer_norm_eps: float
    initializer_range: float
    dropout: float
    type_vocab_size: int = 2
    attention_block: str = PARTS["attention_block"]
    ffn_block: str = PARTS["ffn_block"]
    position_encoding: str = PARTS["position_encoding"]
    attention_scope: str = PARTS["attention_scope"]
    norm_placement: str = PARTS["norm_placement"]

    @classmethod
    def from_config(cls, config: RunConfig) -> "EncoderShape":
        """The shape in a run's configuration."""
        return cls(
            vocab_size=config.tokenizer.vocab_size,
            embedding_size=config.embedding_size,
            # As released: without a projection if the sizes are equal (modeling.py, transformer_model).
            projection=config.projection == "always" or config.embedding_size != config.model.hidden_size,
            dropout=config.dropout,
            **{key: getattr(config, key) for key in PARTS},
            **config.model.model_dump(exclude={"name"}),
            **config.sharing.model_dump(exclude={"name"}),
        )

    @property
    def other_parts(self) -> list[str]:
        """The settings of parts that ALBERT and BERT do not have; formulas and layouts of other tools lack them."""
        others = [f"{part}={getattr(self, part)}" for part, default in PARTS.items() if getattr(self, part) != default]
        known = self.hidden_act in BUILT_IN["model.hidden_act"]
        return others if known else [*others, f"model.hidden_act={self.hidden_act}"]

    @property
    def attention_blocks(self) -> list[int]:
        """Index of the attention block of each layer, in order."""
        return self._blocks(self.attention_groups)

    @property
    def ffn_blocks(self) -> list[int]:
        """Index of the FFN block of each layer, in order."""
        return self._blocks(self.ffn_groups)

    def _blocks(self, groups: Groups) -> list[int]:
        if not isinstance(groups, int):
            return [groups[layer % len(groups)] for layer in range(self.num_layers)]
        # Differs from the release: integer arithmetic, since int(layer / num_layers * groups) is too small for some
        # depths (22 layers in 22 groups: layer 15 would use block 14).
        return [layer * groups // self.num_layers for layer in range(self.num_layers)]


def deepen(tensors: Mapping[str, AnyTensor], shallow: EncoderShape, deep: EncoderShape) -> dict[str, AnyTensor]:
    """The state of a PretrainingModel of the deep shape, from that of the shallow one.

    Blocks shared by all layers are used by more layers. If each layer, or group of layers, has a separate block, each
    block is copied to the same number of consecutive blocks: layers A B C become A A B B C C. All else is unchanged.

    Source: the paper (section 4.9) has only the case of all-shared layers. Consecutive copies keep a layer's relative
    depth.

    Raises:
        ConfigError: the shapes do not allow this.
    """
    copies = check_deepening(shallow, deep)
    deeper: dict[str, AnyTensor] = {}
    for name, tensor in tensors.items():
        if match := _BLOCK.fullmatch(name):
            kind, block, rest = match.groups()
            first = int(block) * copies[kind]
            deeper |= {f"encoder.{kind}_blocks.{first + copy}.{rest}": tensor for copy in range(copies[kind])}
        else:
            deeper[name] = tensor
    return deeper


def check_deepening(shallow: EncoderShape, deep: EncoderShape) -> dict[str, int]:
    """How often each attention and FFN block of the first shape is copied to have the blocks of the second.

    Raises:
        ConfigError: the second is shallower, differs in more than depth, or its number of blocks is not a multiple.
    """
    depths = {key: getattr(deep, key) for key in ("num_layers", "attention_groups", "ffn_groups", "dropout")}
    as_deep = replace(shallow, **depths)
    for key, value in vars(deep).items():
        if getattr(as_deep, key) != value:
            raise ConfigError(f"weights cannot be passed on from {key}={getattr(shallow, key)} to {key}={value}")
    if deep.num_layers < shallow.num_layers:
        raise ConfigError(f"weights of {shallow.num_layers} layers cannot be passed on to only {deep.num_layers}")
    copies: dict[str, int] = {}
    for kind in ("attention", "ffn"):
        before, after = (len({*getattr(shape, f"{kind}_blocks")}) for shape in (shallow, deep))
        if after % before:
            groups = [f"{kind}_groups={getattr(shape, f'{kind}_groups')}" for shape in (shallow, deep)]
            raise ConfigError(
                f"weights cannot be passed on from {groups[0]} to {groups[1]}:"
                f" each block is repeated a whole number of times, so {after} must be a multiple of {before}"
            )
        copies[kind] = after // before
    return copies
