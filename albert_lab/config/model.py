"""The sections of the model: its shape, and how its layers share blocks."""

import math

from pydantic import Field, model_validator

from albert_lab.config.section import PositiveInt, Section
from albert_lab.naming import Name

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


class SharingConfig(Section):
    """How many distinct attention and FFN blocks the layers use; layer i of L uses block i * groups // L."""

    name: Name
    attention_groups: int = PositiveInt
    ffn_groups: int = PositiveInt
