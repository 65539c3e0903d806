"""What a file of own code imports: the decorators that register its parts, and what they are made from.

docs/own-code.md has the table of what can be registered, with signatures and examples.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from albert_lab.registry import include

if TYPE_CHECKING:  # an own check of claims, for one, needs no torch
    from albert_lab.config.data import MaskingConfig
    from albert_lab.config.training import OptimizerConfig
    from albert_lab.data.masking import mask, masking
    from albert_lab.data.pair_kinds import Segments, pair_kind
    from albert_lab.data.pairs import Pairs
    from albert_lab.data.shards import Shards
    from albert_lab.measures.catalog import measure
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
    from albert_lab.studies.claims import BaseClaim, Comparison, Grid, Labels, Name, check
    from albert_lab.tasks.kind import TaskKind, task_kind
    from albert_lab.training.optimizer import optimizer

_MODULES = {
    "config.data": ("MaskingConfig",),
    "config.training": ("OptimizerConfig",),
    "data.masking": ("mask", "masking"),
    "data.pair_kinds": ("Segments", "pair_kind"),
    "data.pairs": ("Pairs",),
    "data.shards": ("Shards",),
    "measures.catalog": ("measure",),
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
    "studies.claims": ("BaseClaim", "Comparison", "Grid", "Labels", "Name", "check"),
    "tasks.kind": ("TaskKind", "task_kind"),
    "training.optimizer": ("optimizer",),
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
    "Name",
    "NormPlacement",
    "OptimizerConfig",
    "Pairs",
    "PositionEncoding",
    "Segments",
    "Shards",
    "TaskKind",
    "activation",
    "attend",
    "attention_block",
    "check",
    "ffn_block",
    "include",
    "mask",
    "masking",
    "measure",
    "norm_placement",
    "optimizer",
    "pair_kind",
    "position_encoding",
    "task_kind",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"albert_lab.{_MODULE_OF[name]}"), name)
