"""What all sections of a configuration share: their base, common fields, and the names that own code can add to."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from albert_lab import registry

MIN_SEQUENCE_LENGTH = 8


class Section(BaseModel):
    """A part of a configuration: frozen, typed strictly, without defaults and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())


AnySection = TypeVar("AnySection", bound=Section)
PositiveInt = Field(gt=0)
Share = Field(ge=0, le=1)
SEEDS = 2**32  # every random number generator accepts seeds below this
Seed = Field(ge=0, lt=SEEDS)


def default(value: Any) -> Any:
    """A field that is left out of records where it has this value: runs from before it existed keep their names."""
    return Field(default=value, exclude_if=lambda current: current == value)


def complete(section: BaseModel) -> dict[str, Any]:
    """All keys of a section as plain data, also those that records leave out at their default."""
    recorded = section.model_dump(mode="json")
    return {
        name: complete(value) if isinstance(value, BaseModel) else recorded.get(name, value) for name, value in section
    }


# What own code can add to, and a configuration names: the names of this package, the default of each part first.
BUILT_IN: dict[registry.Kind, tuple[str, ...]] = {
    "attention_block": ("standard",),
    "ffn_block": ("standard",),
    "position_encoding": ("learned",),
    "norm_placement": ("post",),
    "activation": ("gelu_new", "gelu", "relu"),
    "optimizer": ("lamb", "adamw", "muon"),
    "masking": ("n-gram",),
}
# The exchangeable parts of the encoder, which are keys of a configuration.
PARTS: tuple[registry.Kind, ...] = ("attention_block", "ffn_block", "position_encoding", "norm_placement")
