"""The shape of an encoder as plain numbers, used to build it, to count its cost, and for what
conversions change.
"""

from dataclasses import dataclass
from typing import Any

from albert_lab.config.schema import Groups, RunConfig
from albert_lab.config.section import BUILT_IN, PARTS
from albert_lab.errors import ConfigError


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
    attention_block: str
    ffn_block: str
    position_encoding: str
    attention_scope: str
    layer_scales: str
    type_vocab_size: int = 2

    @classmethod
    def from_config(cls, config: RunConfig) -> "EncoderShape":
        """The shape in a run's configuration."""
        return cls(
            vocab_size=config.tokenizer.vocab_size,
            embedding_size=config.embedding_size,
            # As released: without a projection if the sizes are equal (modeling.py,
            # transformer_model).
            projection=config.projection == "always"
            or config.embedding_size != config.model.hidden_size,
            dropout=config.dropout,
            **{key: getattr(config, key) for key in PARTS},
            **config.model.model_dump(exclude={"name"}),
            **config.sharing.model_dump(exclude={"name"}),
        )

    @property
    def other_parts(self) -> list[str]:
        """The settings of parts that ALBERT and BERT do not have; formulas and layouts of other
        tools lack them.
        """
        others = [
            f"{part}={getattr(self, part)}"
            for part, default in PARTS.items()
            if getattr(self, part) != default
        ]
        if self.hidden_act not in BUILT_IN["model.hidden_act"]:
            others.append(f"model.hidden_act={self.hidden_act}")
        return others

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
        # Differs from the release: integer arithmetic, since int(layer / num_layers * groups) is
        # too small for some depths (22 layers in 22 groups: layer 15 would use block 14).
        return [layer * groups // self.num_layers for layer in range(self.num_layers)]


# What a conversion of weights can change of a shape (model/conversion.py), besides dropout and how
# weights are drawn.
CONVERTIBLE = (
    "embedding_size",
    "projection",
    "num_layers",
    "attention_groups",
    "ffn_groups",
    "max_position_embeddings",
)
_NO_WEIGHTS = ("dropout", "initializer_range")


def changes(source: EncoderShape, target: EncoderShape) -> dict[str, tuple[Any, Any]]:
    """What a conversion from one shape to another changes: by the name of a field, its value before
    and after.

    Raises:
        ConfigError: the weights of the source cannot be converted to the target; names what
            differs.
    """
    before = vars(source)
    after = vars(target)
    different = [key for key in after if before[key] != after[key] and key not in _NO_WEIGHTS]
    refused = {
        key: "embedding_size, sharing, model.num_layers and a larger "
        "model.max_position_embeddings are what converts them"
        for key in different
        if key not in CONVERTIBLE
    }
    if target.max_position_embeddings < source.max_position_embeddings:
        refused["max_position_embeddings"] = "max_sequence_length alone makes sequences shorter"
    if source.projection and not target.projection:
        refused["projection"] = "it has no place: give projection=always"
    if source.layer_scales != "none" and "num_layers" in different:
        refused["num_layers"] = "each of their layers has scales of its own"
    for key, remedy in refused.items():
        raise ConfigError(
            f"{key}={before[key]} of the weights cannot become {after[key]}: {remedy}"
        )
    return {key: (before[key], after[key]) for key in different}
