"""What all sections of a configuration share: their base, common fields, and the names that own
code can add to.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from albert_lab.files import Distinct

MIN_SEQUENCE_LENGTH = 8


class Section(BaseModel):
    """A part of a configuration: frozen, typed strictly, without defaults and without unknown
    keys.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=()
    )


PositiveInt = Field(gt=0)
Share = Field(ge=0, le=1)
SEEDS = 2**32  # every random number generator accepts seeds below this
Seed = Field(ge=0, lt=SEEDS)
DistinctSeeds = Annotated[tuple[Annotated[int, Seed], ...], Distinct, Field(min_length=1)]


def default(value: Any) -> Any:
    """A field that is left out of records where it has this value: runs from before it existed keep
    their names.
    """
    return Field(default=value, exclude_if=lambda current: current == value)


def having(*keys: str) -> AfterValidator:
    """A check of a field that its dict has these keys."""

    def check_keys(content: dict[str, Any]) -> dict[str, Any]:
        if not content.keys() >= {*keys}:
            raise ValueError(f"{' and '.join(keys)} are needed")
        return content

    return AfterValidator(check_keys)


def complete(section: BaseModel) -> dict[str, Any]:
    """All keys of a section as plain data, also those that records leave out at their default."""
    recorded = section.model_dump(mode="json")
    return {
        name: complete(value) if isinstance(value, BaseModel) else recorded.get(name, value)
        for name, value in section
    }


# What this package has of the settings that own code can add values to (own_code.DICTS).
BUILT_IN = {
    "attention_block": ("standard",),
    "ffn_block": ("standard",),
    "position_encoding": ("learned", "rope"),
    "model.hidden_act": ("gelu_new", "gelu", "relu"),
    "optimizer": ("lamb", "adamw", "muon"),
    "masking.method": ("n-gram",),
}
# The exchangeable parts of the encoder, which are keys of a configuration, as they are in ALBERT
# and BERT.
PARTS = {
    "attention_block": "standard",
    "ffn_block": "standard",
    "position_encoding": "learned",
    "attention_scope": "all",
    "layer_scales": "none",
}
