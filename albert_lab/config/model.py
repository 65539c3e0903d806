"""The sections of the model: its shape, and how its layers share blocks."""

import math
from typing import Annotated

from pydantic import Field, model_validator

from albert_lab.config.section import PositiveInt, Section
from albert_lab.record import Name

MAX_LAYERS = 10_000


class ModelConfig(Section):
    """Shape of the encoder: layers L, hidden size H, attention heads, and intermediate_size of the FFN, all counts."""

    name: Name
    num_layers: int = Field(gt=0, le=MAX_LAYERS)
    hidden_size: int = PositiveInt
    num_attention_heads: int = PositiveInt
    intermediate_size: int = PositiveInt
    max_position_embeddings: int = PositiveInt
    hidden_act: str
    layer_norm_eps: float = Field(gt=0)
    initializer_range: float = Field(gt=0)

    @model_validator(mode="after")
    def _heads_divide(self) -> "ModelConfig":
        if self.hidden_size % self.num_attention_heads:
            small = [n for n in range(1, math.isqrt(self.hidden_size) + 1) if self.hidden_size % n == 0]
            divisors = {*small, *(self.hidden_size // n for n in small)}
            nearest = sorted(divisors, key=lambda n: abs(n - self.num_attention_heads))[:4]
            below = self.hidden_size // self.num_attention_heads * self.num_attention_heads
            multiples = [str(size) for size in (below, below + self.num_attention_heads) if size]
            raise ValueError(
                f"num_attention_heads={self.num_attention_heads} does not divide hidden_size={self.hidden_size};"
                f" nearest that do: {', '.join(map(str, sorted(nearest)))}; or hidden_size={' or '.join(multiples)}"
            )
        return self


# A number of groups of consecutive layers: layer i of L has block i * groups // L. Or the number of the block of each
# layer, from 0; a list that is shorter than the encoder is repeated.
Groups = Annotated[int, PositiveInt] | tuple[int, ...]


class SharingConfig(Section):
    """The layers that share an attention block, and those that share an FFN block."""

    name: Name
    attention_groups: Groups
    ffn_groups: Groups

    def check(self, num_layers: int) -> None:
        """Check that an encoder of so many layers can be shared in this way.

        Raises:
            ValueError: it cannot; names the key.
        """
        for key, groups in (("attention_groups", self.attention_groups), ("ffn_groups", self.ffn_groups)):
            if isinstance(groups, int):
                if groups > num_layers:
                    raise ValueError(f"sharing.{key}={groups} is more than model.num_layers={num_layers}")
            elif {*groups} != {*range(len({*groups}))} or num_layers % (len(groups) or 1) or not groups:
                raise ValueError(
                    f"sharing.{key}={list(groups)} at model.num_layers={num_layers}: one number of a block a layer is"
                    " needed, from 0 without gaps, or a shorter list that fits a whole number of times"
                )
