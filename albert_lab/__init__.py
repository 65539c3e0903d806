"""Ablation studies of encoder pre-training: ALBERT's experiments at any scale."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it loads torch, which most commands do not need
    from albert_lab.interop.loading import load

__all__ = ["__version__", "load"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "load":
        from albert_lab.interop.loading import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
