"""What a file of own code imports: the decorators that register its parts, and what they are made from.

docs/own-code.md has the table of what can be registered, with signatures and examples.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from albert_lab.registry import include

if TYPE_CHECKING:  # an own check of claims, for one, needs no torch
    from albert_lab.config.data import MaskingConfig
    from albert_lab.data.masking import mask, masking
    from albert_lab.model.blocks import (
        AttentionBlock,
        FfnBlock,
        NormPlacement,
        activation,
        attend,
        attention_block,
        ffn_block,
        norm_placement,
    )
    from albert_lab.model.positions import PositionEncoding, position_encoding
    from albert_lab.model.shape import EncoderShape
    from albert_lab.studies.checks import check
    from albert_lab.studies.claim import BaseClaim, Comparison, Grid, Labels

_MODULES = {
    "config.schema": ("MaskingConfig",),
    "data.masking": ("mask", "masking"),
    "model.blocks": (
        "AttentionBlock",
        "FfnBlock",
        "NormPlacement",
        "activation",
        "attend",
        "attention_block",
        "ffn_block",
        "norm_placement",
    ),
    "model.positions": ("PositionEncoding", "position_encoding"),
    "model.shape": ("EncoderShape",),
    "studies.checks": ("check",),
    "studies.claim": ("BaseClaim", "Comparison", "Grid", "Labels"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AttentionBlock",
    "BaseClaim",
    "Comparison",
    "EncoderShape",
    "FfnBlock",
    "Grid",
    "Labels",
    "MaskingConfig",
    "NormPlacement",
    "PositionEncoding",
    "activation",
    "attend",
    "attention_block",
    "check",
    "ffn_block",
    "include",
    "mask",
    "masking",
    "norm_placement",
    "position_encoding",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"albert_lab.{_MODULE_OF[name]}"), name)
