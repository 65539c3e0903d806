"""Ablation studies of encoder pre-training: ALBERT's experiments at any scale.

`read_report(path)` has the numbers of a report as pandas tables, `load(folder)` a model and its
tokenizer.
"""

# not that of typing, whose import takes longer than to handle signals (albert_lab/cli)
TYPE_CHECKING = False
if TYPE_CHECKING:  # they load torch and pandas, which most commands do not need
    from albert_lab.interop.loading import load
    from albert_lab.report import read_report

__all__ = ["__version__", "load", "read_report"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    from importlib import import_module

    rooms = {"load": "albert_lab.interop.loading", "read_report": "albert_lab.report"}
    if name not in rooms:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(rooms[name]), name)
